// Package tasklog reads what attempts print: the steps that a program has made, by lines
// that name them (steps.go) or by progress bars (bars.go), and what it says last, in plain
// text (lines.go).
package tasklog

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Made is what an attempt has shown of its steps. The zero value: none.
type Made struct {
	Step    int64     // the last
	Reports int64     // how often a new one was shown
	At      time.Time // when one was last
}

// Report takes in that a step was shown at a time.
func (m *Made) Report(step int64, at time.Time) {
	if step != m.Step {
		m.Step, m.Reports, m.At = step, m.Reports+1, at
	}
}

// Age returns how long ago the last was shown, in milliseconds; 0 if none was.
func (m Made) Age() int64 {
	if m.Reports == 0 {
		return 0
	}
	return time.Since(m.At).Milliseconds()
}

// DefaultSteps is the pattern for what most programs print: "step 12", "step: 12",
// "loss = 0.3, step = 12", "global_step=12".
const DefaultSteps = `(?i)(?:^|[^a-z])step(?:\s*[:=#]\s*|\s+)(\d+)`

// mostSteps bounds what is taken for a step. TensorFlow also tells of the random
// numbers of 56 bits that it gives to each running of a graph: "Step
// 55077700733709485 cancelled" (worker.cc).
const mostSteps = 1_000_000_000_000

// CheckSteps returns what is wrong with a pattern for steps. Its only group is the number.
func CheckSteps(pattern string) error {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return fmt.Errorf("the pattern for the step, %q, is no regular expression: %w", pattern, err)
	}
	if re.NumSubexp() != 1 {
		return fmt.Errorf(`the pattern for the step, %q, has %d groups; it needs one, in which the number stands, as in "iteration (\d+)"`, pattern, re.NumSubexp())
	}
	return nil
}

// StepFinder finds steps in an attempt's output. It may be used by one goroutine at
// a time.
type StepFinder struct {
	re *regexp.Regexp
	// bars are followed unless the user says what a step looks like.
	bars *bars

	ofBars    int64 // the last step that a bar showed; -1: none has
	said      int64 // the last step in a line that names it
	sayings   int   // how often that has changed
	otherBars int64 // how often bars that show no step have moved
	total     int64 // steps that the program makes, as it said with the last step; 0: it did not
}

// NewStepFinder makes one from JobSpec.progress; nil, which finds nothing, for
// what cannot be used.
func NewStepFinder(pattern string) *StepFinder {
	re, err := regexp.Compile(pattern)
	if pattern == "" || err != nil || re.NumSubexp() != 1 {
		return nil
	}
	f := &StepFinder{re: re, ofBars: -1, said: -1}
	if pattern == DefaultSteps {
		f.bars = newBars()
	}
	return f
}

// mostOver bounds the number of overwritten texts of a line that are looked at.
const mostOver = 16

// In returns the last step in a line; false if there is none. Texts that overwrite each
// other, separated by carriage returns, all count.
//
// Once lines have named two steps, bars are ignored; a single one may be where the attempt
// began. Steps from bars never decrease.
func (f *StepFinder) In(line string) (step int64, found bool) {
	if f == nil {
		return 0, false
	}
	if f.bars == nil {
		step, total, found := f.named(line)
		if found {
			f.total = total
		}
		return step, found
	}
	texts := strings.Split(line, "\r")
	for _, text := range texts[max(0, len(texts)-mostOver):] {
		if n, ok := f.text(clean(text), true); ok {
			step, found = n, true
		}
	}
	return step, found
}

// InBar returns the step that a bar shows in an unfinished line, which may be overwritten
// later; false if there is none.
func (f *StepFinder) InBar(text string) (int64, bool) {
	if f == nil || f.bars == nil {
		return 0, false
	}
	return f.text(clean(text), false)
}

// OtherBars returns how often bars that show no step have moved, as that of a validation,
// during which no steps are made.
func (f *StepFinder) OtherBars() int64 {
	if f == nil {
		return 0
	}
	return f.otherBars
}

// Total returns how many steps the program makes in all, where it has said so with the last
// step that was found: as in "step 12/500" or "step 12 of 500", or by a bar of all steps, or
// by one of an epoch under a title with the number of epochs. 0 if it has not.
func (f *StepFinder) Total() int64 {
	if f == nil {
		return 0
	}
	return f.total
}

// text looks at one text; finished: it will not grow any more.
func (f *StepFinder) text(text string, finished bool) (int64, bool) {
	switch kind, n := f.bars.read(text); {
	case kind == trainingBar && f.sayings < 2 && n > f.ofBars:
		f.ofBars, f.total = n, f.bars.all
		return n, true
	case kind == anotherBar, kind == trainingBar && n != f.ofBars && f.bars.other(strconv.FormatInt(n, 10)) == anotherBar:
		f.otherBars++
		return 0, false
	case kind == trainingBar || !finished || strings.Contains(text, "%|"):
		return 0, false
	}
	n, total, ok := f.named(text)
	if !ok {
		return 0, false
	}
	if n != f.said {
		f.said = n
		f.sayings++
	}
	if f.ofBars >= 0 && f.sayings < 2 {
		return n, false
	}
	f.total = total
	return n, true
}

// named returns the last step that a text names, and of how many it says that to be. No part
// of 12% or 12.5 is a step.
func (f *StepFinder) named(text string) (step, total int64, found bool) {
	for _, at := range f.re.FindAllStringSubmatchIndex(text, -1) {
		if at[2] < 0 || f.bars != nil && notWhole.MatchString(text[at[3]:]) {
			continue
		}
		if n, err := strconv.ParseInt(text[at[2]:at[3]], 10, 64); err == nil && n <= mostSteps {
			step, total, found = n, 0, true
			// In an epoch, it is that of the epoch.
			rest := text[at[3]:]
			if m := ofTotal.FindStringSubmatchIndex(rest); m != nil && !notWhole.MatchString(rest[m[1]:]) && !epochWord.MatchString(text) {
				total = max(0, number(rest[m[2]:m[3]]))
			}
		}
	}
	return step, total, found
}

// ofTotal matches what follows the digits of a step of so many.
var ofTotal = regexp.MustCompile(`^(?:\s*/\s*|\s+of\s+)(\d+)`)

// epochWord matches the word in a text that tells of an epoch.
var epochWord = regexp.MustCompile(`(?i)epoch`)

// notWhole matches what follows the digits of a number that is no count.
var notWhole = regexp.MustCompile(`^(?:%|\.\d)`)

// clean removes terminal escape sequences, and what torchrun puts before a line.
func clean(text string) string {
	if strings.Contains(text, "\x1b") {
		text = escapes.ReplaceAllString(text, "")
	}
	if strings.HasPrefix(text, "[") {
		text = WithoutLauncher(text)
	}
	return text
}
