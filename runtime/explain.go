package runtime

import (
	"regexp"
	"slices"
	"strings"
)

// Verdict is what the last lines of a failed task's output tell.
type Verdict struct {
	PeerLost bool   // it ended because a peer went away, not by its own fault
	Advice   string // what to do about it, for a person; may be empty
	Error    string // the last exception, in one line; empty: there is none
}

// Explain reads the last lines of a failed task's output.
//
// A task may have complained about peers long before it died of something
// else, so the last exception counts where there is one, and single phrases
// only where there is none.
func Explain(framework string, tail []string) Verdict {
	text := strings.Join(tail, "\n")
	if len(text) > maxExplained {
		text = text[len(text)-maxExplained:]
	}
	last := lastException(text)
	v := judge(text, last)
	if !signalled.MatchString(last) {
		line, _, _ := strings.Cut(last, "\n")
		v.Error = plain(line)
	}
	return v
}

func judge(text, last string) Verdict {
	if peerErrors.MatchString(last) || wrapperErrors.MatchString(last) && goneMount.MatchString(last) {
		return Verdict{PeerLost: true}
	}
	if do := advise(text); do != "" {
		return Verdict{Advice: do}
	}
	if last == "" {
		return Verdict{PeerLost: peerPhrases.MatchString(text)}
	}
	// Some exceptions wrap any cause and say in words which it was.
	return Verdict{PeerLost: wrapperErrors.MatchString(last) && peerPhrases.MatchString(last)}
}

// signalled are exceptions that only say that the task was told to end.
var signalled = regexp.MustCompile(`^(?:[A-Za-z_]\w*\.)*(?:KeyboardInterrupt|SystemExit|SignalException)\b`)

// LastLine is the last line of a task's output that says something, in plain text: what
// a program that aborts says of it. Where Python's faulthandler wrote after that where
// the program stood, that is left out.
func LastLine(tail []string) string {
	for i, line := range tail {
		if strings.HasPrefix(line, "Fatal Python error: ") || stackHead.MatchString(line) {
			tail = tail[:i]
			break
		}
	}
	for _, line := range slices.Backward(tail) {
		if text := plain(line); text != "" {
			return text
		}
	}
	return ""
}

// stackHead begins what Python's faulthandler writes of a thread (dump_traceback in
// Python/traceback.c).
var stackHead = regexp.MustCompile(`^(?:Current thread|Thread) 0x[0-9a-f]+.*\(most recent call first\):$`)

// stackMost bounds the lines of a stack.
const stackMost = 30

// Stack is what a program wrote of where it stands: its main thread, innermost first;
// nil if it wrote nothing.
func Stack(tail []string) []string {
	at := -1
	for i, line := range tail {
		if strings.HasPrefix(line, "Current thread") && stackHead.MatchString(line) || at < 0 && stackHead.MatchString(line) {
			at = i
		}
	}
	if at < 0 {
		return nil
	}
	stack := []string{plain(tail[at])}
	for _, line := range tail[at+1:] {
		if !strings.HasPrefix(line, "  File ") || len(stack) > stackMost {
			break
		}
		stack = append(stack, "  "+plain(line))
	}
	return stack
}

// quotedMost bounds the bytes of a line that is quoted.
const quotedMost = 300

// escapes are what terminals take for commands (ECMA-48), and controls what is left.
var (
	escapes  = regexp.MustCompile(`\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]`)
	controls = regexp.MustCompile(`[\x00-\x1f\x7f-\x{9f}]+`)
)

// plain makes text of what a task wrote that can stand in a line.
func plain(line string) string {
	line = strings.TrimSpace(controls.ReplaceAllString(escapes.ReplaceAllString(line, ""), ""))
	if len(line) > quotedMost {
		line = strings.ToValidUTF8(line[:quotedMost], "") + "..."
	}
	return line
}

// maxExplained keeps the time that a very long line takes small.
const maxExplained = 64 << 10

// exceptionHead is the line of a Python traceback that names the exception: it
// alone begins in the first column with a dotted name that ends so.
var exceptionHead = regexp.MustCompile(`(?m)^(?:[A-Za-z_]\w*\.)*[A-Za-z_]*(?:Error|Exception|Interrupt|Exit|Timeout)(?::.*)?$`)

// traceback begins another exception's traceback.
var traceback = regexp.MustCompile(`(?m)^Traceback \(most recent call last\):`)

// lastException gives the last exception from its name on, to the end of the
// text or the beginning of the next traceback: messages have many lines.
func lastException(text string) string {
	all := exceptionHead.FindAllStringIndex(text, -1)
	if len(all) == 0 {
		return ""
	}
	last := text[all[len(all)-1][0]:]
	if next := traceback.FindStringIndex(last); next != nil {
		last = last[:next[0]]
	}
	return last
}

var (
	// peerErrors are exceptions that mean a lost peer by their name alone.
	// TensorFlow: _RecoverableSession (monitored_session.py) takes the first
	// two as a lost peer; a cancelled step is what the others of a broken
	// session see.
	peerErrors = regexp.MustCompile(`^(?:[A-Za-z_]\w*\.)*(?:AbortedError|UnavailableError|CancelledError|ConnectionResetError|ConnectionRefusedError|ConnectionAbortedError|BrokenPipeError|ncclRemoteError|DistNetworkError|DistStoreError)\b`)

	// wrapperErrors are exceptions that wrap any cause.
	wrapperErrors = regexp.MustCompile(`^(?:[A-Za-z_]\w*\.)*(?:RuntimeError|InternalError|UnknownError|DeadlineExceededError|FailedPreconditionError|NotFoundError|InvalidArgumentError|DistBackendError|DistError|XlaRuntimeError|JaxRuntimeError|OSError|EOFError|TimeoutError)\b`)

	// goneMount is what a checkpoint mount whose agent was killed answers, to a peer
	// that is about to be killed, too: ENOTCONN and ECONNABORTED, after a file's name.
	goneMount = regexp.MustCompile(`; (?:Transport endpoint is not connected|Software caused connection abort)`)

	peerPhrases = regexp.MustCompile(`(?i)connection reset by peer|connection refused|connection closed by peer|connection was closed|broken pipe|socket closed|socket timeout|failed to connect to all addresses|endpoint read failed|recvmsg:|unexpectedly? (?:restarted|closed)|possibly this worker just restarted|worker .* just restarted|session handle is not found|remote peer|peer (?:was )?(?:lost|closed)|code = unavailable|statuscode\.unavailable|\bUNAVAILABLE: |heartbeat timeout|tasks? (?:have|has) (?:crashed|died)|task .* set to ERROR|remote process exited|no route to host|transport endpoint is not connected|software caused connection abort|session was not ready after waiting|Watchdog caught collective operation timeout|Connect timeout`)
)

// advice pairs what a tail says with what to do. The first that fits counts.
var advice = []struct {
	says *regexp.Regexp
	do   string
}{
	{
		regexp.MustCompile(`module '?tensorflow(?:\.compat\.v2)?'? has no attribute '(?:placeholder|Session|InteractiveSession|app|ConfigProto|GPUOptions|global_variables_initializer|initialize_all_variables|get_variable|variable_scope|set_random_seed|train\.(?:Server|Supervisor)|logging|flags|gfile|contrib|reset_default_graph|log|to_int64|to_float|random_uniform|random_normal|truncated_normal|layers|summary|trainable_variables|get_default_graph|python_io|Print)'|module '?tensorflow(?:\._api\.v2\.train|\.train|\._api\.v2\.compat\.v2\.train|\.keras\.train|\.[\w.]*)'? has no attribute '(?:Server|Supervisor|MonitoredTrainingSession|Saver|GradientDescentOptimizer|AdagradOptimizer|AdamOptimizer|FtrlOptimizer|replica_device_setter|StopAtStepHook|get_or_create_global_step|SummarySaverHook|import_meta_graph|merge_all)'`),
		"The script is written for TensorFlow 1 and this is TensorFlow 2: run it with --tf1.",
	},
	{
		regexp.MustCompile(`(?i)placeholder\(\) is not compatible with eager execution|loss. passed to Optimizer\.compute_gradients should be a function when eager`),
		"The script is written for TensorFlow 1 and runs with the behaviour of TensorFlow 2: run it with --tf1.",
	},
	{
		regexp.MustCompile(`No module named '?tensorflow\.contrib|tf\.contrib\.[\w.]+ is not in TensorFlow 2`),
		"tf.contrib ended with TensorFlow 1; the script needs TensorFlow 1 itself, in an environment shipped with --archives, or an edit.",
	},
	{
		regexp.MustCompile(`(?:ModuleNotFoundError|ImportError): No module named`),
		"A Python module is missing where the task runs: ship an environment that has it, as in --archives venv.tar.gz#venv -- venv/bin/python ..., or name a Python that has it.",
	},
	{
		regexp.MustCompile(`(?i)No space left on device|Disk quota exceeded|The DiskSpace quota of .* is exceeded|The NameSpace quota .* is exceeded`),
		"The disk, or the HDFS quota, is full: make room or raise the quota, then start the job again; it goes on from the newest complete checkpoint.",
	},
	{
		regexp.MustCompile(`(?i:not ?found)[^\n]*_temp(?:_[0-9a-f]+)?/part-\d+-of-\d+|_temp(?:_[0-9a-f]+)?(?:/part-\S*)?; No such file or directory|allow_missing_files was set to false and \S*_temp`),
		"A task did not find the parts of the checkpoint that others wrote. Name the directory that the script writes, as it spells it, with --checkpoint PATH=URI, so that all tasks share it; if it is named, something else removed files in it.",
	},
	{
		regexp.MustCompile(`(?s)Failed to get matching files on \S+|Unsuccessful TensorSliceReader constructor`),
		"A task cannot read the checkpoint that another one wrote. Name the checkpoint directory, as the script spells it, with --checkpoint PATH=URI, so that all tasks share it; if it is named, see yarn-submit ckpt ls URI for what is complete.",
	},
	{
		regexp.MustCompile(`(?i)CUDA out of memory|CUDA_ERROR_OUT_OF_MEMORY|OutOfMemoryError: (?:CUDA|HIP)|RESOURCE_EXHAUSTED: .*(?:GPU|OOM when allocating)|OOM when allocating tensor`),
		"The memory of the GPU, or of the device named above, was used up: use a smaller batch or model, or more GPUs; a larger --worker-memory does not help a GPU.",
	},
	{
		regexp.MustCompile(`(?m)^MemoryError\b|Cannot allocate memory|std::bad_alloc`),
		"The task used up its memory: give its role more, for example --worker-memory 4g.",
	},
	{
		regexp.MustCompile(`(?i)CUDA driver version is insufficient|no CUDA-capable device is detected|Found no NVIDIA driver`),
		"The task found no usable GPU: ask for one with --worker-gpus 1, and see that the node's driver is as new as the framework wants.",
	},
	{
		regexp.MustCompile(`can't open file '[^']*': \[Errno 2\]`),
		"The script is not where the task runs: ship it with --files, and name it in the command as it stands in the working directory.",
	},
	{
		regexp.MustCompile(`(?i)address already in use|Could not start gRPC server`),
		"The task could not listen where it wanted to: another program has that port, or another task of the job, as where two take themselves for the same rank. Let it listen on {port}, or on its own entry of {ROLE_hosts}.",
	},
}

func advise(text string) string {
	for _, a := range advice {
		if a.says.MatchString(text) {
			return a.do
		}
	}
	return ""
}
