// Package kms asks Hadoop's key servers (KMS) for the keys of files in encryption
// zones.
//
// # Protocol
//
// A provider is a URI, kms://http@host1;host2:9600/kms, of servers that have the
// same keys and the same port (KMSClientProvider.Factory); its REST is under
// http://host1:9600/kms/v1/ (KMSRESTConstants, KMS.java):
//
//	POST keyversion/VERSION/_eek?eek_op=decrypt   {"name", "iv", "material"}: a file's
//	                                              encrypted key; answers its "material"
//	GET  ?op=GETDELEGATIONTOKEN&renewer=          {"Token": {"urlString"}}
//	PUT  ?op=RENEWDELEGATIONTOKEN&token=          {"long": milliseconds}
//	GET  keys/names                               403 for a user who may not list keys
//
// Bytes are in base64. A refusal is {"RemoteException": {"message", "exception",
// "javaClassName"}}, which becomes an rpc.RemoteError.
//
// Without security the query says who one is (user.name). On a secure cluster the
// header X-Hadoop-Delegation-Token has the token for the provider (kind kms-dt,
// its service the provider's URI), or Authorization has a Kerberos ticket for
// HTTP/host (SPNEGO), which alone gets and renews tokens
// (DelegationTokenAuthenticator).
//
// Keys are not kept beyond the file that they are for, and are in no error and no
// log.
package kms
