// Package hdfs holds the messages of HDFS's client protocol and data transfer
// that are needed to write and read files.
package hdfs
