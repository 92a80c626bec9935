// Package common holds the messages of Hadoop's RPC layer and its tokens: the
// part of RpcHeader.proto, IpcConnectionContext.proto, ProtobufRpcEngine.proto,
// ProtocolInfo.proto and Security.proto that a client needs, with their field names and numbers.
//
// The protobuf package is not Hadoop's "hadoop.common": package and file names
// do not go over the wire, and another library in the same binary registers
// those.
package common

//go:generate go run github.com/bufbuild/buf/cmd/buf@v1.50.0 generate
