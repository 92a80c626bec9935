// Package warm starts attempts of Python tasks without the seconds that
// importing TensorFlow takes: from a process that has imported it
// already, and forks.
//
// # The warm interpreter
//
// It is the command of an attempt, byte for byte, with the attempt's
// environment and in its sandbox, and it stops in the task's start-up file
// (package runtime, shim/sitecustomize.py), before Python looks at the script.
// There it imports one module, named by proto.EnvWarm, and waits. For an attempt
// it forks, twice, so that its grandchild falls to the sandbox's keeper as an
// attempt of its own would. The child gets the attempt's output, directory and
// environment, leads a session, and returns from the start-up file: Python goes
// on to the script. What a script could see of the import (sys.modules and such)
// is put away until it imports the module itself: shim/_holdfast_warm.py.
//
// # Who gets one
//
// Only a command that is known to come to that place: an attempt that started
// the ordinary way has written there, as its own process, under which
// environment and sys.path its script imports the module. Some while after
// that the interpreter is prepared, slowly, so as not to take processors from
// the task. Its command and environment must then be the next attempt's, but for
// the variables that count attempts; if they are not, or if anything else is
// amiss, the attempt starts the ordinary way.
//
// The interpreter refuses if the import leaves what a fork would not inherit or
// would share: threads, processes, descriptors, devices (a GPU in use is one),
// and if it runs files of the task's own. An attempt from it that fails soon is
// the last: Standby.Refuse.
//
// # Memory
//
// The interpreter gives back what it can read again from its files. It is ended
// when the container would come near its limit, where it has one, or the machine
// to the end of its memory.
//
// # Goroutines
//
// Standby.Exec starts one, which ends with the attempt or by Close.
package warm
