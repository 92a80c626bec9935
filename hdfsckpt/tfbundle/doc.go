// Package tfbundle reads TensorFlow's checkpoint files (V2, "tensor bundles")
// without TensorFlow.
//
// # The index
//
// PREFIX.index is a table as LevelDB has it (tensorflow/core/lib/io/format.h):
// blocks, each followed by a byte for its compression (0: none, all that
// TensorFlow writes) and the masked CRC32C of block and byte; at the end a
// footer of 48 bytes with the places of a meta index and of the index block,
// padding and the magic number. A block has entries whose keys share their
// beginning with the one before (varint shared, varint rest, varint value, rest
// of the key, value), then fixed32 restart points and their number.
//
// The key "" has a BundleHeaderProto, every other key a BundleEntryProto
// (tensorflow/core/protobuf/tensor_bundle.proto). Keys are tensors' names. A
// partitioned tensor's entry lists its slices, and each slice has an entry of
// its own, whose key is the name and the slice in an ordered encoding
// (tensorflow/core/util/saved_tensor_slice_util.h) and begins with a zero byte.
//
// # The data
//
// PREFIX.data-SSSSS-of-NNNNN hold the tensors' bytes, at the offset and of the
// length in the entry, little endian. A string tensor is the varint lengths of
// its elements, the masked CRC32C of these, and the elements' bytes
// (tensorflow/core/util/tensor_bundle/tensor_bundle.cc, WriteStringTensor).
//
// An entry's crc32c is that of its bytes; for a string tensor, that of the
// lengths as fixed32 (fixed64 above 4 GiB), their checksum, and the elements.
package tfbundle
