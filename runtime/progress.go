package runtime

import (
	"fmt"
	"regexp"
	"strconv"

	"holdfast/proto"
)

// defaultProgress finds what most programs print: "step 12", "step: 12",
// "loss = 0.3, step = 12", "global_step=12".
const defaultProgress = `(?i)(?:^|[^a-z])step(?:\s*[:=#]\s*|\s+)(\d+)`

// mostSteps bounds what is taken for a step. TensorFlow also tells of the random
// numbers of 56 bits that it gives to each running of a graph: "Step
// 55077700733709485 cancelled" (worker.cc).
const mostSteps = 1_000_000_000_000

func completeProgress(spec *proto.JobSpec) error {
	if spec.Progress == "" {
		spec.Progress = defaultProgress
	}
	re, err := regexp.Compile(spec.Progress)
	if err != nil {
		return fmt.Errorf("the pattern for the step, %q, is no regular expression: %w", spec.Progress, err)
	}
	if re.NumSubexp() != 1 {
		return fmt.Errorf(`the pattern for the step, %q, has %d groups; it needs one, in which the number stands, as in "iteration (\d+)"`, spec.Progress, re.NumSubexp())
	}
	return nil
}

// StepFinder finds steps in a task's output. It may be used by one goroutine at
// a time.
type StepFinder struct{ re *regexp.Regexp }

// NewStepFinder makes one from JobSpec.progress; nil, which finds nothing, for
// what cannot be used.
func NewStepFinder(pattern string) *StepFinder {
	re, err := regexp.Compile(pattern)
	if pattern == "" || err != nil || re.NumSubexp() != 1 {
		return nil
	}
	return &StepFinder{re}
}

// In is the last step in a line; false if there is none.
func (f *StepFinder) In(line string) (int64, bool) {
	if f == nil {
		return 0, false
	}
	all := f.re.FindAllStringSubmatch(line, -1)
	if len(all) == 0 {
		return 0, false
	}
	n, err := strconv.ParseInt(all[len(all)-1][1], 10, 64)
	if err != nil || n > mostSteps {
		return 0, false
	}
	return n, true
}
