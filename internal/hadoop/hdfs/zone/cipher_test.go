package zone

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestKnownAnswer is CTR-AES128.Encrypt of NIST SP 800-38A, F.5.1.
func TestKnownAnswer(t *testing.T) {
	c, err := NewCipher(unhex(t, "2b7e151628aed2a6abf7158809cf4f3c"), unhex(t, "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"))
	if err != nil {
		t.Fatal(err)
	}
	b := unhex(t, "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e5130c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710")
	plain := bytes.Clone(b)
	c.XOR(b, 0)
	if got, want := hex.EncodeToString(b), "874d6191b620e3261bef6864990db6ce9806f66b7970fdff8617187bb9fffdff5ae4df3edbd5d35e5b4f09020db03eab1e031dda2fbe03d1792170a0f3009cee"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	c.XOR(b[17:40], 17)
	if !bytes.Equal(b[17:40], plain[17:40]) {
		t.Error("a part is not decrypted")
	}
}

// TestOffsets compares parts with the whole, with a counter that overflows in each
// of its halves.
func TestOffsets(t *testing.T) {
	key := unhex(t, "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
	for _, iv := range []string{"00000000000000000000000000000000", "000102030405060708ffffffffffffff", "00000000000000ffffffffffffffffff", "ffffffffffffffffffffffffffffffff", "0011223344556677fffffffffffffff0"} {
		block, err := aes.NewCipher(key)
		if err != nil {
			t.Fatal(err)
		}
		want := make([]byte, 5000)
		cipher.NewCTR(block, unhex(t, iv)).XORKeyStream(want, want)
		c, err := NewCipher(key, unhex(t, iv))
		if err != nil {
			t.Fatal(err)
		}
		for range 300 {
			from := rand.IntN(len(want))
			part := make([]byte, rand.IntN(len(want)-from+1))
			c.XOR(part, int64(from))
			if !bytes.Equal(part, want[from:from+len(part)]) {
				t.Fatalf("the bytes from %d to %d are others, with the vector %s", from, from+len(part), iv)
			}
		}
	}
	// Far into a file, beyond 32 bits of blocks.
	c, err := NewCipher(key, make([]byte, 16))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := aes.NewCipher(key)
	want, got := make([]byte, 16), make([]byte, 16)
	block.Encrypt(want, unhex(t, "00000000000000000000000500000001"))
	c.XOR(got, 0x500000001*16)
	if !bytes.Equal(got, want) {
		t.Errorf("far into a file: %x, want %x", got, want)
	}
}

func TestNoCipher(t *testing.T) {
	b := []byte("as it is")
	(*Cipher)(nil).XOR(b, 3)
	if string(b) != "as it is" {
		t.Errorf("a file in no zone is changed: %q", b)
	}
	for _, sizes := range [][2]int{{16, 15}, {15, 16}, {0, 16}, {16, 0}} {
		if _, err := NewCipher(make([]byte, sizes[0]), make([]byte, sizes[1])); err == nil {
			t.Errorf("a key of %d bytes and a vector of %d are taken", sizes[0], sizes[1])
		}
	}
}

// TestSecrecy prints a cipher in all ways.
func TestSecrecy(t *testing.T) {
	c, err := NewCipher(bytes.Repeat([]byte{0xab}, 16), bytes.Repeat([]byte{0xcd}, 16))
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%d", "%q"} {
		for _, v := range []any{c, struct{ C *Cipher }{c}} {
			if s := fmt.Sprintf(verb, v); strings.Contains(s, "abab") || strings.Contains(s, "171") || strings.Contains(s, "205") {
				t.Errorf("%s shows %s", verb, s)
			}
		}
	}
}
