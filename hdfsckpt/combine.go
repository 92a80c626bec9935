package hdfsckpt

// combine returns the CRC32C of two byte sequences together, by the sums of both; n is the
// length of the second. A sum is the remainder of a polynomial over GF(2), and n bytes that
// follow multiply that polynomial by x^(8n).
func combine(first, second uint32, n int64) uint32 {
	const one, byteMore = 1 << 31, 1 << (31 - 8)
	power := uint32(one)
	for square := uint32(byteMore); n > 0; n >>= 1 {
		if n&1 != 0 {
			power = product(power, square)
		}
		square = product(square, square)
	}
	return product(power, first) ^ second
}

// product multiplies modulo Castagnoli's polynomial. The highest bit is that of
// x^0, as in package hash/crc32.
func product(a, b uint32) uint32 {
	const polynomial = 0x82f63b78
	var p uint32
	for ; a != 0; a <<= 1 {
		if a&(1<<31) != 0 {
			p ^= b
		}
		odd := b & 1
		b = b>>1 ^ odd*polynomial
	}
	return p
}
