// Package yarn holds YARN's messages: the part of yarn_protos.proto and
// yarn_service_protos.proto that a client, an application master and a starter
// of containers need, with their names and field numbers as in Hadoop 3.4.
// Fields that nothing here reads are left out; older and newer servers' fields
// are skipped by protobuf itself.
//
// The protobuf package is not Hadoop's "hadoop.yarn": package and file names do
// not go over the wire.
package yarn

//go:generate go run github.com/bufbuild/buf/cmd/buf@v1.50.0 generate
