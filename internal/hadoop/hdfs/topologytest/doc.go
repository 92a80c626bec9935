// Package topologytest tests HDFS where one NameNode is not all there is: behind a real
// Router with two namespaces, and with a real observer. It has no code of its own.
package topologytest
