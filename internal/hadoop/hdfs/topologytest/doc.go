// Package topologytest tests HDFS where one NameNode, and DataNodes at the addresses with which
// they registered, are not all there is: behind a real Router with two namespaces, with a real
// observer, and with DataNodes that are reached by their names only. It has no code of its own.
package topologytest
