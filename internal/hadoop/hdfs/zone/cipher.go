package zone

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"fmt"
	"math/bits"
)

// Cipher encrypts a file's bytes for DataNodes, and decrypts them (AES/CTR/NoPadding,
// AesCtrCryptoCodec). It may be used by many goroutines. A nil Cipher, for a file that is in no
// zone, changes nothing.
type Cipher struct {
	block  cipher.Block
	hi, lo uint64 // the counter at the file's beginning
}

// NewCipher makes a cipher of a file's key and initial vector.
func NewCipher(key, iv []byte) (*Cipher, error) {
	if len(iv) != aes.BlockSize {
		return nil, fmt.Errorf("its initial vector has %d bytes, not %d", len(iv), aes.BlockSize)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("its key has %d bytes: AES has none of that size", len(key))
	}
	return &Cipher{block: block, hi: binary.BigEndian.Uint64(iv), lo: binary.BigEndian.Uint64(iv[8:])}, nil
}

// XOR encrypts or decrypts b in place, which begins at an offset in the file.
func (c *Cipher) XOR(b []byte, offset int64) {
	if c == nil || len(b) == 0 {
		return
	}
	var counter, skipped [aes.BlockSize]byte
	lo, carry := bits.Add64(c.lo, uint64(offset)/aes.BlockSize, 0)
	binary.BigEndian.PutUint64(counter[:], c.hi+carry)
	binary.BigEndian.PutUint64(counter[8:], lo)
	stream := cipher.NewCTR(c.block, counter[:])
	if n := offset % aes.BlockSize; n > 0 {
		stream.XORKeyStream(skipped[:n], skipped[:n])
	}
	stream.XORKeyStream(b, b)
}

// String keeps the key out of messages.
func (c *Cipher) String() string { return "cipher of a file" }

// GoString is String.
func (c *Cipher) GoString() string { return c.String() }

// Format keeps the key out of every other verb.
func (c *Cipher) Format(f fmt.State, _ rune) { fmt.Fprint(f, c.String()) }
