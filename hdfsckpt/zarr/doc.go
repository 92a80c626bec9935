// Package zarr reads arrays in the forms zarr 2 and 3 as far as Orbax has TensorStore write
// them, without TensorStore (https://zarr-specs.readthedocs.io: Zarr specification v2, Zarr core
// specification v3, and its codecs "bytes", "zstd" and "sharding_indexed").
//
// An array is a set of values by their names, as files in a directory or entries of a key-value
// store: its metadata, a JSON object, and its elements, cut into chunks of one shape. A chunk
// at the end is as large as the others, and what lies behind the end of the array means
// nothing. Chunks that are not stored consist of the fill value.
//
//	         version 2                        version 3
//	metadata .zarray                          zarr.json
//	chunks   1.0 (0 of a scalar)              c/1/0 (c of a scalar)
//	in them  elements, little endian, row by row; compressed by zstd or not
//	shards   none                             or several such chunks, one after the other, and
//	                                          where each is: uint64le offset and length, both
//	                                          all ones if it is not stored; uint32le CRC-32C
//
// Elements are read of all kinds that package tensor knows. What is written otherwise (big
// endian, column by column, by other codecs) is named, and its elements are not read.
package zarr

// The names of metadata.
const (
	Metadata2 = ".zarray"
	Metadata3 = "zarr.json"
)
