// Package wire has the messages of TensorFlow's checkpoint index.
package wire
