package tasklog

import (
	"regexp"
	"slices"
	"strings"
)

// LastLine returns the last line of a task's output that is not empty, in plain text: what
// an aborting program gives as the reason. The stacks that Python's faulthandler prints
// after that, and what a shell says of it, are left out.
func LastLine(tail []string) string {
	for i, line := range tail {
		if strings.HasPrefix(line, "Fatal Python error: ") || stackHead.MatchString(line) {
			tail = tail[:i]
			break
		}
	}
	for _, line := range slices.Backward(tail) {
		if text := Plain(line); text != "" && !abortNotice.MatchString(text) {
			return text
		}
	}
	return ""
}

// abortNotice is what a shell writes when its program has aborted: the signal's name, before
// which Bash puts the place in the script and the process, and the command after it.
var abortNotice = regexp.MustCompile(`^(?:\S+:(?: line \d+:)? +\d+ )?Aborted(?: \(core dumped\))?(?: {2,}.*)?$`)

// stackHead begins what Python's faulthandler writes of a thread (dump_traceback in
// Python/traceback.c).
var stackHead = regexp.MustCompile(`^(?:Current thread|Thread) 0x[0-9a-f]+.*\(most recent call first\):$`)

// stackMost bounds the lines of a stack.
const stackMost = 30

// Stack returns the stack of the main thread that a program has printed, innermost frame
// first; nil if it has printed none.
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
	stack := []string{Plain(tail[at])}
	for _, line := range tail[at+1:] {
		if !strings.HasPrefix(line, "  File ") || len(stack) > stackMost {
			break
		}
		stack = append(stack, "  "+Plain(line))
	}
	return stack
}

// javaStackHead begins what Java writes of a thread on SIGQUIT (print_on in
// hotspot/share/runtime/javaThread.cpp).
var javaStackHead = regexp.MustCompile(`^"[^"]*" #\d+ `)

// Stacks returns all stacks of threads in what a program of Python's or Java's wrote, each
// a text of several lines, innermost first.
func Stacks(lines []string) []string {
	var all []string
	in := false
	for _, line := range lines {
		switch {
		case stackHead.MatchString(line), javaStackHead.MatchString(line):
			in = true
			all = append(all, Plain(line))
		case in && (strings.HasPrefix(line, "  ") || strings.HasPrefix(line, "\t")):
			all[len(all)-1] += "\n  " + Plain(line)
		default:
			in = false
		}
	}
	return all
}

// quotedMost bounds the bytes of a line that is quoted.
const quotedMost = 300

// escapes are terminal escape sequences (ECMA-48); controls are other control characters.
var (
	escapes  = regexp.MustCompile(`\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]`)
	controls = regexp.MustCompile(`[\x00-\x1f\x7f-\x{9f}]+`)
)

// WithoutEscapes returns a task's line without terminal escape sequences, as those of
// colours.
func WithoutEscapes(line string) string { return escapes.ReplaceAllString(line, "") }

// Plain returns a task's line without control characters, and of at most 300 bytes, to be
// quoted in a line of Holdfast's.
func Plain(line string) string {
	line = strings.TrimSpace(controls.ReplaceAllString(WithoutEscapes(line), ""))
	if len(line) > quotedMost {
		line = strings.ToValidUTF8(line[:quotedMost], "") + "..."
	}
	return line
}

// launcherPrefix is what torchrun --tee puts before the lines of its processes, the role
// and the local rank (start_processes in
// torch/distributed/elastic/multiprocessing/__init__.py), and what PyTorch since 2.2 puts
// before those of tracebacks (_distributed_excepthook in torch/distributed/__init__.py).
var launcherPrefix = regexp.MustCompile(`(?m)^(?:\[[A-Za-z_]+[0-9]+\]: ?)+`)

// WithoutLauncher returns a text without what launchers put before its lines.
func WithoutLauncher(text string) string { return launcherPrefix.ReplaceAllString(text, "") }
