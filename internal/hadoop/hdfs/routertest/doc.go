// Package routertest tests HDFS behind a real Router with two namespaces. It has no
// code of its own.
package routertest
