package runtime

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"holdfast/runtime/framework"
	"holdfast/runtime/frameworks"
	"holdfast/runtime/tasklog"
)

// Verdict is what the last lines of a failed task's output tell.
type Verdict struct {
	PeerLost bool   // it ended because a peer went away, not by its own fault
	Advice   string // what to do about it, for a person; may be empty
	Error    string // the last exception, in one line; empty: there is none
}

// Explain reads the last lines of a failed task's output.
func Explain(tail []string) Verdict {
	text := strings.Join(tail, "\n")
	if len(text) > maxExplained {
		text = text[len(text)-maxExplained:]
	}
	return knownFailures().explain(tasklog.WithoutLauncher(tasklog.WithoutEscapes(text)))
}

// explain judges an output. A task may have complained about peers, or about what its node
// lacks, long before it died of something else. So where there is an exception, the last
// one counts, for advice with what it is chained to; and where there is none, what was
// said last. An exception by which a peer is lost is not, where it says what else it is about.
func (l *failurePatterns) explain(text string) Verdict {
	raised := l.raised(text)
	if len(raised) == 0 {
		lines := strings.Split(text, "\n")
		slices.Reverse(lines)
		if l.lostFirst(lines) {
			return Verdict{PeerLost: true}
		}
		return Verdict{Advice: l.advise(text)}
	}
	last, v := raised[0], Verdict{}
	if !signalled.MatchString(last.Line) {
		v.Error = tasklog.Plain(last.Line)
	}
	if l.lost.MatchString(last.Line) && l.advise(last.Line) == "" || l.any.MatchString(last.Line) && (goneMount.MatchString(last.Text) || l.lostFirst(strings.Split(last.Text, "\n"))) {
		v.PeerLost = true
		return v
	}
	for _, e := range raised {
		if v.Advice = l.advise(e.Text); v.Advice != "" {
			break
		}
	}
	return v
}

// lostFirst reports whether, of the lines that say what to judge by, the first is about a
// lost peer.
func (l *failurePatterns) lostFirst(lines []string) bool {
	for _, line := range lines {
		if l.phrases.MatchString(line) {
			return true
		}
		if l.advise(line) != "" {
			return false
		}
	}
	return false
}

// signalled are exceptions that only say that the task was told to end.
var signalled = regexp.MustCompile(`^(?:[A-Za-z_]\w*\.)*(?:KeyboardInterrupt|SystemExit|SignalException)\b`)

// maxExplained keeps the time that a very long line takes small.
const maxExplained = 64 << 10

// raised returns the last exception of a text, and then what it is chained to, the nearest
// first; none if there is none. That of a launcher counts where there is no other.
func (l *failurePatterns) raised(text string) []tasklog.Exception {
	all := tasklog.Exceptions(text)
	for n, e := range slices.Backward(all) {
		if !l.launchers.MatchString(e.Line) {
			all = all[:n+1]
			break
		}
	}
	first := len(all) - 1
	for first > 0 && all[first].Chained {
		first--
	}
	chain := slices.Clone(all[max(0, first):])
	slices.Reverse(chain)
	return chain
}

// What programs say whatever their framework.
var (
	commonFailures = framework.Failures{
		Lost: []string{"ConnectionResetError", "ConnectionRefusedError", "ConnectionAbortedError", "BrokenPipeError"},
		Any:  []string{"RuntimeError", "OSError", "EOFError", "TimeoutError"},
		Phrases: []string{
			`connection reset by peer`, `connection refused`, `broken pipe`, `remote peer`, `peer (?:was )?(?:lost|closed)`,
			`code = unavailable`, `statuscode\.unavailable`, `no route to host`, `transport endpoint is not connected`,
			`software caused connection abort`,
		},
	}

	// outside is advice about causes outside the program, which may make it fail in
	// any way: it comes before the frameworks' own.
	outside = []framework.Advice{
		{
			Says: `(?i)No space left on device|Disk quota exceeded|The DiskSpace quota of .* is exceeded|The NameSpace quota .* is exceeded`,
			Do:   "The disk, or the HDFS quota, is full: make room or raise the quota, then start the job again; it goes on from the newest complete checkpoint.",
		},
	}

	// general is advice about any program: it comes after the frameworks' own.
	general = []framework.Advice{
		{
			Says: `(?:ModuleNotFoundError|ImportError): No module named`,
			Do:   "A Python module is missing where the task runs: ship an environment that has it, as in --archives venv.tar.gz#venv -- venv/bin/python ..., or name a Python that has it.",
		},
		{Says: `(?i)CUDA_ERROR_OUT_OF_MEMORY`, Do: framework.UseLessDeviceMemory},
		{
			Says: `(?m)^MemoryError\b|Cannot allocate memory|std::bad_alloc`,
			Do:   "The task used up its memory: give its role more, for example --worker-memory 4g.",
		},
		{
			Says: `(?i)CUDA driver version is insufficient|no CUDA-capable device is detected|Found no NVIDIA driver`,
			Do:   "The task found no usable GPU: ask for one with --worker-gpus 1, and see that the node's driver is as new as the framework wants.",
		},
		{
			Says: `can't open file '[^']*': \[Errno 2\]`,
			Do:   "The script is not where the task runs: ship it with --files, and name it in the command as it stands in the working directory.",
		},
		{
			Says: `(?i)address already in use|Could not start gRPC server|Failed to add port to server`,
			Do:   "The task could not listen where it wanted to: another program has that port, or another task of the job, as where two take themselves for the same rank. Let it listen on {port}, or on its own entry of {ROLE_hosts}.",
		},
	}
)

// goneMount is what a checkpoint mount whose agent was killed answers, to a peer
// that is about to be killed, too: ENOTCONN and ECONNABORTED, after a file's name.
var goneMount = regexp.MustCompile(`; (?:Transport endpoint is not connected|Software caused connection abort)`)

// failurePatterns are what all frameworks know of failures, compiled. The job's framework does
// not narrow it: a program may use libraries of others.
type failurePatterns struct {
	lost, any, launchers, phrases *regexp.Regexp
	advice                        []compiledAdvice
}

type compiledAdvice struct {
	says *regexp.Regexp
	do   string
}

var knownFailures = sync.OnceValue(newFailurePatterns)

func newFailurePatterns() *failurePatterns {
	lost, any, phrases := commonFailures.Lost, commonFailures.Any, commonFailures.Phrases
	launchers := []string{}
	advice := slices.Clone(outside)
	for _, f := range frameworks.All {
		lost, any, phrases = slices.Concat(lost, f.Failures.Lost), slices.Concat(any, f.Failures.Any), slices.Concat(phrases, f.Failures.Phrases)
		launchers = append(launchers, f.Failures.Launchers...)
		advice = append(advice, f.Advice...)
	}
	l := &failurePatterns{
		lost: regexp.MustCompile(oneOf(lost)), any: regexp.MustCompile(oneOf(any)), launchers: regexp.MustCompile(oneOf(launchers)),
		phrases: regexp.MustCompile(`(?i)` + strings.Join(phrases, "|")),
	}
	for _, a := range append(advice, general...) {
		l.advice = append(l.advice, compiledAdvice{regexp.MustCompile(a.Says), a.Do})
	}
	return l
}

// advise returns the first advice that fits; "" if none does.
func (l *failurePatterns) advise(text string) string {
	for _, a := range l.advice {
		if a.says.MatchString(text) {
			return a.do
		}
	}
	return ""
}

// oneOf makes a regular expression of the names of exceptions, dotted or not, at
// the beginning of a text.
func oneOf(names []string) string {
	return `^(?:[A-Za-z_]\w*\.)*(?:` + strings.Join(names, "|") + `)\b`
}

// FrameworkErrorFile returns the error file of an attempt with an environment: one
// that the environment names already, or that of its framework, with the name that is
// to be set then; nil if it has none.
func FrameworkErrorFile(env map[string]string) (file *framework.ErrorFile, name string) {
	for _, f := range frameworks.All {
		if f.ErrorFile != nil && env[f.ErrorFile.Variable] != "" {
			return f.ErrorFile, env[f.ErrorFile.Variable]
		}
	}
	if f := frameworks.Named(env["HOLDFAST_FRAMEWORK"]); f != nil {
		return f.ErrorFile, ""
	}
	return nil, ""
}
