// Package warm starts attempts of Python tasks without the seconds that importing a
// framework takes: by forking a process that has imported it already.
//
// # The warm interpreter
//
// A warm interpreter is the exact command of an attempt, with the attempt's environment and
// in its sandbox, which stops in the task's start-up file (package runtime,
// python/_holdfast/start.py) before Python reads the script. There it imports one module,
// named by proto.EnvWarm, and waits. For an attempt it forks twice, so that its grandchild
// becomes a child of the sandbox's init process, as an ordinary attempt is. The grandchild
// gets the attempt's output, directory, environment and the arguments after the script,
// leads a session and returns from the start-up file, so that Python runs the script. What
// a script could see of the import (sys.modules and such) is hidden until it imports the
// module itself: python/_holdfast/hidden.py.
//
// If an attempt is to start while the import is still under way, the interpreter does not
// fork, but becomes the attempt itself once the import has finished. The attempt waits only
// for the rest of the import.
//
// # Which attempts
//
// A warm interpreter needs an import profile: the environment and sys.path under which the
// script imports the module (ImportProfile). The first attempt of a job is always started
// normally; its start-up file writes the profile. The profile is used in
//   - the task's own container, where an interpreter is prepared for the next attempt some
//     time later, slowly, so as not to take processors from the task;
//   - other containers of the job, which receive it through the application master (Known,
//     Prewarm): a spare one, and one for a task that has lost its own, so that even their
//     first attempt is forked.
//
// The attempt's command up to the script, and all of its environment on which an import
// may depend, must equal the interpreter's. If they differ, or anything else fails, the
// attempt is started normally.
//
// The interpreter refuses to serve if the import has started threads or processes, holds
// descriptors or devices such as a GPU, which a fork would lose or share, or if it has run
// files of the task's own. If an attempt that was forked fails soon after its start, no
// other is forked (Standby.Refuse).
//
// # Memory
//
// The interpreter releases the pages that it can read again from its files. It is ended
// when the container comes near its memory limit, or, where there is none, when the machine
// runs short.
//
// # Goroutines
//
// Standby.Exec and Prewarm each start one, which ends at the next Exec or Close. Exec also
// starts one that ends with its attempt.
package warm
