// Package sasl is the client's side of two SASL mechanisms, compatible with Java's
// implementations: DIGEST-MD5 (RFC 2831), which Hadoop's services use
// with tokens, for RPC connections and for HDFS data transfer; and GSSAPI (RFC
// 4752) with Kerberos 5 (RFC 4121), for RPC connections.
//
// GSSAPI protects messages by wrap tokens (gsswrap.go). Those are defined anew
// for AES; the older form that RC4 has is not supported.
//
// A Digest is one exchange: Step answers the server's challenge, Finish checks
// the server's proof (rspauth) and returns the Session that protects what
// follows, or nil if nothing but authentication (qop "auth") was negotiated.
//
// # Messages protected by DIGEST-MD5
//
// auth-int: message ‖ first 10 bytes of HMAC-MD5(signing key, sequence ‖ message)
// ‖ 00 01 ‖ sequence (4 bytes, big-endian, from 0, each direction its own).
//
// auth-conf: cipher(message ‖ padding ‖ the same 10 bytes) ‖ 00 01 ‖ sequence.
// RC4 has no padding; DES and 3DES in CBC pad to the block with bytes that each
// hold the padding's length, and chain on from message to message. Their key is
// taken from the first 7 (14) bytes of the sealing key, the initial vector is
// its last 8 bytes (RFC 2831 section 2.4).
package sasl
