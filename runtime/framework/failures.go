package framework

// Failures recognizes the last words of a task that ended because it lost a peer.
type Failures struct {
	// Lost are names of exceptions that mean a lost peer, whatever their message, unless
	// there is advice about it.
	Lost []string
	// Any are names of exceptions that may have any cause, which their message tells.
	Any []string
	// Launchers are names of exceptions by which a launcher says that a process of its
	// own failed, whose last words stand before.
	Launchers []string
	// Phrases are regular expressions, without regard to case, for messages about
	// a lost peer. They count in exceptions of Any, and where there is no exception.
	Phrases []string
}

// Advice is what to do about a failure.
type Advice struct {
	Says string // a regular expression (RE2) that the output matches
	Do   string // for a person
}

// ErrorFile is a file in which a framework writes why a process failed.
type ErrorFile struct {
	Variable string // the environment variable that names it
	// Read returns the output that the file stands for, and the time of the
	// failure in milliseconds since 1970; "" if the file tells nothing.
	Read func(content []byte) (atMS int64, text string)
}

// UseLessDeviceMemory is advice about the memory of an accelerator.
const UseLessDeviceMemory = "The memory of the GPU, or of the device named above, was used up: use a smaller batch or model, or more GPUs; a larger --worker-memory does not help a GPU."
