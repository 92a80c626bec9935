// Package torture proves the store's promise by breaking it: whatever is
// killed, cut off or left half done, a job starts again from its last complete
// checkpoint, or a later one, and never from a mixture or from nothing. It has
// tests only.
//
//   - crash_test.go replays saves through the real mount and looks at what a
//     crash at each change of the store would leave.
//   - kill_test.go ends real processes in the middle of saves.
//   - zombie_test.go lets a writer that was given up come back.
//   - bits_test.go flips bits.
//   - hdfs_test.go does it on a real HDFS whose daemons die.
//
// save_test.go generates the file operations of saves, bundle_test.go the files
// that they write, restore_test.go is a model of what TensorFlow restores.
package torture
