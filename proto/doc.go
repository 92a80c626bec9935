// Package proto is the contract between the application master, its agents and
// the client: gRPC services and messages (holdfast.proto), and the names of
// files, variables and secrets that they agree on (names.go).
package proto
