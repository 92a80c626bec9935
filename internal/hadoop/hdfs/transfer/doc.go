// Package transfer connects to DataNodes, with the protection that the cluster
// requires.
//
// # Which protection
//
// As SaslDataTransferClient.java decides, in this order:
//
//  1. The NameNode says that data is encrypted (getServerDefaults,
//     dfs.encrypt.data.transfer): a handshake with the data encryption key.
//  2. This side does not use Kerberos (hadoop.security.authentication): none.
//  3. The DataNode listens on a port below 1024: none; only root can open one.
//  4. The block has no access token, as in a cluster without security, and
//     ipc.client.fallback-to-simple-auth-allowed is true: none.
//  5. dfs.data.transfer.protection is set: a handshake with the block token.
//  6. Otherwise none.
//
// Java classes that a site names for this (dfs.trustedchannel.resolver.class,
// dfs.data.transfer.saslproperties.resolver.class) are ignored. With auth-conf
// AES is always offered, whatever dfs.encrypt.data.transfer.cipher.suites is on
// this side: the DataNode decides.
//
// # Handshake
//
// The client begins with the number DEADBEEF, where an operation would begin
// with its version. Then both sides send DataTransferEncryptorMessageProto in turn, each
// after its length as a varint (datatransfer.proto, DataTransferSaslUtil.java):
//
//	client  SUCCESS, an empty payload; the handshake secret, if the token has one
//	server  SUCCESS, the challenge of DIGEST-MD5, protocol "hdfs", server "0"
//	client  SUCCESS, the response; with auth-conf an offer of AES/CTR/NoPadding
//	server  SUCCESS, its proof; with AES two keys, wrapped in the session, and IVs
//
// A failure is ERROR_UNKNOWN_KEY for a data encryption key that the DataNode no
// longer has, and otherwise ERROR, with accessTokenError for a token. User name
// and password are the block token's identifier and password in base64, or of
// an encryption key "KEYID POOL NONCE", the nonce in base64, and the key in
// base64.
//
// # Afterwards
//
//	auth        bytes as they are
//	auth-int    messages, each after its length (4 bytes, big-endian); package
//	auth-conf   package sasl describes what they contain
//	AES         a stream in counter mode for each direction: the client reads
//	            with outKey and outIv and writes with inKey and inIv. It has no
//	            check codes; HDFS's checksums find accidents, not attacks.
//
// # Goroutines
//
// None stay. A connection takes one reader and one writer at a time.
package transfer
