package yarn

import (
	"regexp"
	"strings"
)

// What YARN writes about a container's end is a log of the NodeManager: each line with a
// time, some for every end, and Java's stack traces (ContainerImpl.addDiagnostics,
// ContainerLaunch.handleContainerExitWithFailure, ResourceLocalizationService); of one that is
// killed for its memory with a list of its processes (ContainersMonitorImpl.formatErrorMessage,
// ProcfsBasedProcessTree.getProcessTreeDump).
var (
	diagnosticStamp = regexp.MustCompile(`^\[\d{4}-\d\d-\d\d [\d:.]+\]\s*`)
	// diagnosticNoise are lines that say nothing of the reason.
	diagnosticNoise = regexp.MustCompile(`^(?:$|Exception from container-launch\.?$|Container id: |Exit code: |Container exited with a non-zero exit code |Error file: |Last \d+ bytes of |Shell (?:output|error output): |Dump of the process-tree for |\|- |at [\w$.<>/]+\(|\.\.\. \d+ more$|For more detailed output)`)
	// diagnosticResource is a file that a node was to fetch, with the state of that.
	diagnosticResource = regexp.MustCompile(`\{ \{ ([^ ,]+), [^}]*\}[^}]*\}`)
	diagnosticClass    = regexp.MustCompile(`(?:[a-z]\w*\.)+[A-Z]\w*(?:Exception|Error): `)
)

// diagnosticMost bounds the bytes of a reason.
const diagnosticMost = 400

// Reason returns, in one line and no more than some 400 bytes, what YARN's diagnostics of the end
// of a container or an application say of its reason; "" if they say nothing.
func Reason(diagnostics string) string {
	text := ""
	for line := range strings.Lines(diagnostics) {
		line = diagnosticStamp.ReplaceAllString(strings.TrimSpace(line), "")
		if diagnosticNoise.MatchString(line) {
			continue
		}
		line = diagnosticResource.ReplaceAllString(strings.TrimPrefix(line, "Caused by: "), "$1")
		line = strings.TrimRight(diagnosticClass.ReplaceAllString(line, ""), " .")
		if line == "" || strings.Contains(text, line) {
			continue
		}
		if text != "" {
			text += "; "
		}
		if text += line; len(text) > diagnosticMost {
			return strings.ToValidUTF8(text[:diagnosticMost], "") + "..."
		}
	}
	return text
}
