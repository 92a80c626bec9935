// Package rpc is a client of Hadoop RPC, version 9 (org.apache.hadoop.ipc),
// with protobuf messages.
//
// # On the wire
//
// A connection begins with "hrpc", the version 09, a service class 00, and 00
// for SIMPLE or df (−33) for SASL. Then packets go both ways, each a 4-byte
// big-endian length and length-delimited messages: from the client a
// RpcRequestHeaderProto, a RequestHeaderProto and the request; from the server
// a RpcResponseHeaderProto and the response, in any order. Call ids below zero
// are no calls: −3 the connection context, sent once before the first call, −4
// a ping, −33 SASL messages. A response with status FATAL ends the connection.
//
// With SASL: NEGOTIATE, answered by the methods on offer; INITIATE with the
// chosen one and the answer to the challenge in the offer; then CHALLENGE and
// RESPONSE in turn until SUCCESS. If integrity or privacy was negotiated, whole
// packets with their length are wrapped in SASL messages of state WRAP.
//
// # What is retried
//
// A call that was not carried out, because of a standby or a refused connection, goes
// to the next address. A call that was sent and whose connection was then
// lost is sent again only if Options.Retry.Resend says so; it keeps its call id
// and client id and counts its retries, so that the NameNode's retry cache
// recognises it. Exceptions are returned as they are; but a login by a Kerberos ticket that the
// server refuses is made once more, on a new connection, if there is another ticket then.
//
// With Resend, a call that has no answer after two seconds is also sent to the other
// addresses, in turn, while the first answer is awaited: otherwise a server that hangs
// would keep a client from one that has taken over. The server that carries out the call,
// or throws an exception that the call has caused, is the active one from then on. That is
// done with what may be carried out twice (Options.Anywhere) and, where the other server says
// that only one is active at a time (Options.OneActive), with all calls. Other calls go to the
// next address when the first has failed: its connection, or the time for an answer.
//
// # Goroutines
//
// A Client has at most one connection to each address, opened when it is needed. One
// goroutine opens and reads it, a second one writes; both end with the connection or with
// Close, which waits for them. A cancelled call leaves the connection open; its answer is
// dropped.
package rpc
