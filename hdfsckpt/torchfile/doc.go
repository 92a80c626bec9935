// Package torchfile reads PyTorch's checkpoint files without PyTorch and
// without executing anything that they contain.
//
// # torch.save
//
// Since PyTorch 1.6 the file is a ZIP archive whose members are not compressed
// (torch/csrc "PyTorchStreamWriter"): NAME/data.pkl is a pickle of the object
// that was saved, in which each tensor's storage is a persistent id
//
//	("storage", CLASS, KEY, LOCATION, number of elements)
//
// and NAME/data/KEY has that storage's bytes. CLASS (torch.FloatStorage) gives
// the kind of elements, or is torch.storage.UntypedStorage, with bytes for
// elements and the kind beside it. A tensor is a call of
// torch._utils._rebuild_tensor_v2(storage, offset, size, stride, ...), offset
// and stride counted in elements (torch/_utils.py). NAME/byteorder says
// "little" or "big". Every member has its CRC-32, unless the program asked for
// none (torch.serialization.set_crc32_options): then all are 0.
//
// Before, the file was a row of pickles and raw storages without checksums or
// an end that differs from a cut: IsLegacy.
//
// # Distributed checkpoints (DCP)
//
// A directory with __RANK_N.distcp files, and .metadata, which is renamed into
// place last: a pickle of torch.distributed.checkpoint.metadata.Metadata. Its
// state_dict_metadata has each item's kind, shape and chunks, its
// storage_data where each chunk lies (file, offset, length). The bytes there
// are what torch.save writes for that chunk alone, a ZIP archive again
// (torch/distributed/checkpoint/filesystem.py).
//
// # Pickles
//
// A pickle is a program for a stack machine that may call any function of
// Python's. Here calls are recorded and not made: see unpickle. All formats are
// given by CPython's Lib/pickletools.py.
package torchfile
