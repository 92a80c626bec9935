package token

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"holdfast/test/bound"
)

// sample is the bytes of version 0 by WritableUtils' rules: one token with a
// 200-byte identifier (vint 8f c8), one secret.
func sample() (*Credentials, string) {
	c := New()
	c.Tokens["127.0.0.1:8020"] = Token{
		Identifier: bytes.Repeat([]byte{0xab}, 200), Password: []byte{1, 2, 3},
		Kind: KindHDFS, Service: "127.0.0.1:8020",
	}
	c.Secrets["holdfast.agent"] = []byte("geheim")
	service := "0e" + hex.EncodeToString([]byte("127.0.0.1:8020"))
	return c, "48445453" + "00" + "01" + service +
		"8fc8" + strings.Repeat("ab", 200) + "03010203" +
		"15" + hex.EncodeToString([]byte(KindHDFS)) + service +
		"01" + "0e" + hex.EncodeToString([]byte("holdfast.agent")) + "06" + hex.EncodeToString([]byte("geheim"))
}

func TestMarshalKnownBytes(t *testing.T) {
	c, want := sample()
	if got := hex.EncodeToString(c.Marshal()); got != want {
		t.Errorf("Marshal\n%s, want\n%s", got, want)
	}
}

func TestRoundTrip(t *testing.T) {
	c, _ := sample()
	c.Tokens[""] = Token{Kind: KindAMRM} // the AMRM token's service is empty
	c.Secrets["empty"] = nil
	proto, err := c.MarshalProto()
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"version 0": c.Marshal(), "version 1": proto} {
		got, err := Parse(b)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !reflect.DeepEqual(got.Marshal(), c.Marshal()) {
			t.Errorf("%s: read back %v", name, got)
		}
		for i := range b {
			if _, err := Parse(b[:i]); err == nil {
				t.Fatalf("%s: the first %d of %d bytes were taken for a file", name, i, len(b))
			}
		}
	}
}

func TestVLong(t *testing.T) {
	for v, want := range map[int64]string{
		0: "00", 127: "7f", -112: "90", 128: "8f80", 255: "8fff", 256: "8e0100",
		-113: "8770", math.MaxInt64: "887fffffffffffffff", math.MinInt64: "807fffffffffffffff",
	} {
		b := appendVLong(nil, v)
		if hex.EncodeToString(b) != want {
			t.Errorf("%d is written as %x, want %s", v, b, want)
		}
		if got, n := consumeVLong(b); got != v || n != len(b) {
			t.Errorf("%x is read as %d, %d bytes", b, got, n)
		}
	}
}

func TestFiles(t *testing.T) {
	c, _ := sample()
	path := filepath.Join(t.TempDir(), "tokens")
	if err := c.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	t.Setenv(EnvFile, path)
	got, err := FromEnvironment()
	if err != nil {
		t.Fatal(err)
	}
	if k, ok := got.Find(KindHDFS, ""); !ok || k.Service != "127.0.0.1:8020" {
		t.Errorf("Find: %v, %v", k, ok)
	}
	if _, ok := got.Find(KindHDFS, "another:1"); ok {
		t.Error("found a token of another service")
	}
	t.Setenv(EnvFile, path+"x")
	if _, err := FromEnvironment(); err == nil || !strings.Contains(err.Error(), EnvFile) {
		t.Errorf("a missing file: %v", err)
	}
	t.Setenv(EnvFile, "")
	if got, err := FromEnvironment(); err != nil || len(got.Tokens) != 0 {
		t.Errorf("without a file: %v, %v", got, err)
	}
}

// TestSecrecy prints a token in all ways.
func TestSecrecy(t *testing.T) {
	k := Token{Identifier: []byte("IDENTIFIER"), Password: []byte("PASSWORD"), Kind: "kind", Service: "service"}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, v := range []any{k, &k, []Token{k}, map[string]Token{"a": k}} {
			s := fmt.Sprintf(verb, v)
			for _, secret := range []string{"PASSWORD", fmt.Sprintf("%x", "PASSWORD"), fmt.Sprint([]byte("PASSWORD"))[1:10]} {
				if strings.Contains(s, secret) {
					t.Errorf("%s of %T shows the password: %s", verb, v, s)
				}
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	c, _ := sample()
	f.Add(c.Marshal())
	b, err := c.MarshalProto()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte("HDTS\x00\x8c\x7f\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer bound.Memory(t, len(b), 1000)()
		c, err := Parse(b)
		if err != nil {
			return
		}
		again, err := Parse(c.Marshal())
		if err != nil || !bytes.Equal(again.Marshal(), c.Marshal()) {
			t.Errorf("what was read cannot be written and read again: %v", err)
		}
	})
}

// TestWrittenByHadoop reads files that Hadoop 3.4.2's Credentials wrote, in
// both formats.
func TestWrittenByHadoop(t *testing.T) {
	identifier := make([]byte, 300)
	for i := range identifier {
		identifier[i] = byte(i)
	}
	want := New()
	want.Tokens["127.0.0.1:8020"] = Token{Identifier: identifier, Password: []byte("password of the token"), Kind: KindHDFS, Service: "127.0.0.1:8020"}
	want.Tokens[""] = Token{Identifier: []byte{1}, Password: []byte{2}, Kind: KindAMRM}
	want.Secrets["näme"] = make([]byte, 200)
	want.Secrets["empty"] = nil
	for _, name := range []string{"writable", "protobuf"} {
		got, err := ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Marshal(), want.Marshal()) {
			t.Errorf("%s: read %v", name, got)
		}
	}
}

// TestDelegation reads an identifier as the NameNode makes it.
func TestDelegation(t *testing.T) {
	identifier, _ := hex.DecodeString("0013" + hex.EncodeToString([]byte("alice@HOLDFAST.TEST")) + "02" + hex.EncodeToString([]byte("rm")) + "00" +
		"8a01a1fea6734e" + "8a01a1fea6928e" + "0102")
	d, err := Token{Kind: KindHDFS, Identifier: identifier}.Delegation()
	if err != nil || d.Owner != "alice@HOLDFAST.TEST" || d.Renewer != "rm" || d.Max.Sub(d.Issued).Milliseconds() != 0x1f40 {
		t.Errorf("%+v, %v", d, err)
	}
	for i := range identifier[:30] {
		if _, err := (Token{Kind: KindHDFS, Identifier: identifier[:i]}).Delegation(); err == nil {
			t.Errorf("%d bytes of it are taken", i)
		}
	}
	if _, err := (Token{Kind: KindAMRM}).Delegation(); err == nil {
		t.Error("an AMRMToken is no delegation token")
	}
}

// TestURLString has the known word of a token, and reads it back.
func TestURLString(t *testing.T) {
	k := Token{Identifier: []byte{1, 2}, Password: []byte{0xff, 0xfe}, Kind: KindKMS, Service: "kms://http@h:1/kms"}
	want := "AgECAv_-Bmttcy1kdBJrbXM6Ly9odHRwQGg6MS9rbXM"
	if got := k.URLString(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for _, s := range []string{want, want + "="} {
		if got, err := ParseURLString(s); err != nil || !reflect.DeepEqual(got, k) {
			t.Errorf("%s is read as %v, %v", s, got, err)
		}
	}
	for i := range want[:40] {
		if _, err := ParseURLString(want[:i]); err == nil {
			t.Errorf("%d characters of it are taken", i)
		}
	}
}

func FuzzURLString(f *testing.F) {
	f.Add("AgECAv_-Bmttcy1kdBJrbXM6Ly9odHRwQGg6MS9rbXM")
	f.Fuzz(func(t *testing.T, s string) {
		defer bound.Memory(t, len(s), 64)()
		k, err := ParseURLString(s)
		if err != nil {
			return
		}
		if again, err := ParseURLString(k.URLString()); err != nil || !reflect.DeepEqual(again, k) {
			t.Errorf("what was read cannot be written and read again: %v", err)
		}
	})
}

func FuzzDelegation(f *testing.F) {
	f.Add([]byte{0, 1, 'a', 1, 'b', 0, 1, 2}, true)
	f.Add([]byte{0x0a, 1, 'a', 0x20, 5}, false)
	f.Fuzz(func(t *testing.T, b []byte, hdfs bool) {
		defer bound.Memory(t, len(b), 100)()
		k := Token{Kind: KindRM, Identifier: b}
		if hdfs {
			k.Kind = KindHDFS
		}
		_, _ = k.Delegation() // it must not panic
	})
}

func TestProgramsGetNoSecrets(t *testing.T) {
	c := New()
	c.Secrets["holdfast.agent"] = []byte("key")
	for _, kind := range []string{KindHDFS, KindAMRM, KindNM, KindRM} {
		c.Tokens[kind] = Token{Kind: kind, Service: "s"}
	}
	p := c.ForPrograms()
	if _, ok := p.Find(KindHDFS, "s"); !ok || len(p.Tokens) != 1 || len(p.Secrets) != 0 {
		t.Errorf("programs get %v and %d secrets", p.Tokens, len(p.Secrets))
	}
	if len(c.Tokens) != 4 || len(c.Secrets) != 1 {
		t.Error("the credentials that they are taken from have changed")
	}
}
