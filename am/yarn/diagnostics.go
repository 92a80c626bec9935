package yarn

import (
	"regexp"
	"strings"
)

// What YARN writes about a container's end is a log of the NodeManager: each line with a
// time, some for every end, and Java's stack traces (ContainerImpl.addDiagnostics,
// ContainerLaunch.handleContainerExitWithFailure, ResourceLocalizationService).
var (
	diagnosticStamp = regexp.MustCompile(`^\[\d{4}-\d\d-\d\d [\d:.]+\]\s*`)
	// diagnosticNoise are lines that say nothing of the reason.
	diagnosticNoise = regexp.MustCompile(`^(?:$|Exception from container-launch\.?$|Container id: |Exit code: |Container exited with a non-zero exit code |Error file: |Last \d+ bytes of |Shell (?:output|error output): |at [\w$.<>/]+\(|\.\.\. \d+ more$|For more detailed output)`)
	// diagnosticResource is a file that a node was to fetch, with the state of that.
	diagnosticResource = regexp.MustCompile(`\{ \{ ([^ ,]+), [^}]*\}[^}]*\}`)
	diagnosticClass    = regexp.MustCompile(`(?:[a-z]\w*\.)+[A-Z]\w*(?:Exception|Error): `)
)

// diagnosticMost bounds the bytes of a reason.
const diagnosticMost = 400

// reason returns, in one line, what YARN's diagnostics of a container's end say of its
// reason; "" if they say nothing.
func reason(diagnostics string) string {
	var said []string
	for line := range strings.Lines(diagnostics) {
		line = diagnosticStamp.ReplaceAllString(strings.TrimSpace(line), "")
		if diagnosticNoise.MatchString(line) {
			continue
		}
		line = diagnosticResource.ReplaceAllString(line, "$1")
		line = strings.TrimRight(diagnosticClass.ReplaceAllString(line, ""), " .")
		if known := strings.Join(said, "; "); line != "" && !strings.Contains(known, line) {
			said = append(said, line)
		}
	}
	text := strings.Join(said, "; ")
	if len(text) > diagnosticMost {
		text = strings.ToValidUTF8(text[:diagnosticMost], "") + "..."
	}
	return text
}
