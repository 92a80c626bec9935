// Package hdf5 reads the datasets of HDF5 files as h5py writes them for Keras, without the
// library of HDF5. It is our own because all that there is for Go either calls that library,
// and the program is built without C, or is in no release that the module proxy has.
//
// The source is the HDF5 File Format Specification, version 3.0
// (https://support.hdfgroup.org/documentation/hdf5/latest/_f_m_t3.html); comments name its
// sections. Read are
//
//   - superblocks of the versions 0 to 3, with addresses and lengths of 8 bytes;
//   - object headers of the versions 1 and 2, with their continuations;
//   - groups as symbol tables, as h5py makes them unless it is told otherwise, and as links in
//     the group's header or in a fractal heap, as it makes them for track_order and libver;
//   - datasets that lie in one piece, in their header, or in chunks with a B-tree of version 1,
//     plain or with the filters gzip and shuffle;
//   - integers, IEEE's floats and bfloat16 of both byte orders, booleans (h5py's enumeration of
//     FALSE and TRUE), enumerations as their integers, and opaque elements if an attribute
//     dtype names what they are, as Keras does for bfloat16.
//
// Other types are named only: strings, compounds (of which h5py makes complex numbers), arrays,
// references. Datasets of a newer layout in chunks, with other filters, in other files, and
// those never written, are listed with their type and shape, and cannot be read. Links to
// names and to other files are not followed, and checksums are not compared: files of the
// oldest version, which h5py writes, have none.
//
// Nothing in a file is trusted: what is read and held of it is bounded by its length, whatever
// it says.
package hdf5
