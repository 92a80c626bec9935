// Package clustertest tests HDFS on real clusters with Kerberos, at every
// protection of RPC and data transfer. It has no code of its own.
package clustertest
