// Package torture proves the store's promise by breaking it: whatever is
// killed, cut off or left half done, a job starts again from its last complete
// checkpoint, or a later one, and never from a mixture or from nothing. It has
// tests only.
//
//   - crash_test.go replays saves through the real mount and looks at what a
//     crash at each change of the store would leave.
//   - plain_test.go does so with files that are not TensorFlow's.
//   - tensorflow_test.go has the real TensorFlow restore from what was left.
//   - zombie_test.go lets a writer that was given up come back.
//   - cutoff_test.go does so in the middle of an append or a rename, where the writer was
//     stopped, or was cut off from its store, and then maybe killed.
//   - bits_test.go flips bits.
//   - hdfs_test.go ends real agents, DataNodes and the NameNode in the middle of
//     saves, on a real HDFS.
//
// The ordinary suite takes samples. Flags make it longer: -histories, -restores,
// -everywhere (all places on HDFS), -kills and -kill-size.
//
// save_test.go generates the file operations of saves, bundle_test.go the files
// that they write, restore_test.go is a model of what TensorFlow restores.
package torture
