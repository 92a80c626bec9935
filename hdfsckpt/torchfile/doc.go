// Package torchfile reads PyTorch's checkpoint files without PyTorch and
// without executing anything that they contain.
//
// # torch.save
//
// Since PyTorch 1.6 the file is a ZIP archive whose members are not compressed
// (PyTorchStreamWriter in torch/csrc). NAME/data.pkl is a pickle of the saved object,
// in which each tensor's storage is a persistent id
//
//	("storage", CLASS, KEY, LOCATION, number of elements)
//
// and NAME/data/KEY has that storage's bytes. CLASS names the type of the elements, as in
// torch.FloatStorage. If it is torch.storage.UntypedStorage, the elements are bytes, and
// the tensor has the type. A tensor is a call of
// torch._utils._rebuild_tensor_v2(storage, offset, size, stride, ...), with offset and
// stride in elements (torch/_utils.py). NAME/byteorder says "little" or "big". Every member
// has a CRC-32, unless the program turned them off
// (torch.serialization.set_crc32_options): then all are 0.
//
// Before 1.6, the file was a sequence of pickles and raw storages, without checksums or an
// end mark, so that a file that was cut off cannot be recognized (IsLegacy).
//
// # Distributed checkpoints (DCP)
//
// A checkpoint is a directory of files __RANK_N.distcp and a file .metadata, which is
// renamed into place last. That is a pickle of
// torch.distributed.checkpoint.metadata.Metadata: state_dict_metadata has each item's type,
// shape and chunks, and storage_data the location of each chunk (file, offset, length). A
// chunk is what torch.save writes for it alone, a ZIP archive
// (torch/distributed/checkpoint/filesystem.py).
//
// # Pickles
//
// A pickle is a program for a stack machine, and may call any Python function. This package
// records calls and executes none (unpickle). CPython's Lib/pickletools.py defines the
// operations.
package torchfile
