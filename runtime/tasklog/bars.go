package tasklog

import (
	"regexp"
	"strconv"
	"strings"
)

// Progress bars show the position within an epoch; the step follows from that and the
// epoch's number. A bar whose epoch is not known is ignored: it may show a validation, or
// the reading of data.
//
//	Epoch: [3][5/40]                 examples/imagenet of PyTorch; epochs from 0
//	Epoch [3/10], Step [5/40]        epochs from 1
//	Epoch 3:  12%|█▎   | 5/40 [...]  Lightning, and tqdm with such a title; epochs from 0
//	Epoch 3/10                       then 5/40 [==>...], 5/40 ━━━ or 40/40 - 3s of Keras,
//	                                 or tqdm without a title; epochs from 1
//	 13%|█▎   | 51/400 [...]         Hugging Face's Trainer, whose bar is of all steps; it
//	                                 is known by what is printed beside it
//
// The numbers in a title like Epoch 3/10 begin with 1, unless a 0 is among them.
var (
	bracketed   = regexp.MustCompile(`Epoch:?\s*\[\s*(\d+)\s*\]\s*\[\s*(\d+)/(\d+)\]`)
	epochAndOf  = regexp.MustCompile(`(?i)\bepoch:?\s*\[?(\d+)/(\d+)\]?\W{1,3}(?:step|iter|iteration|batch):?\s*\[?(\d+)/(\d+)\]?(?:\D|$)`)
	epochHeader = regexp.MustCompile(`^\W*Epoch:?\s*\[?(\d+)\s*/\s*(\d+)\]?[\s:.-]*$`)
	// tqdmBar is format_meter's (tqdm/std.py): title, count, total, unit.
	tqdmBar   = regexp.MustCompile(`^\s*(.*?):?\s*\d+%\|[^|]*\|\s*(\d+)/(\d+) \[[^\]<]*<[^,\]]*,\s*[\d.?]*\s*([^,\]]*)`)
	tqdmEpoch = regexp.MustCompile(`^(?i:train(?:ing)? )?Epoch:?\s*\[?(\d+)(?:/(\d+))?\]?(?i:\s*[\[(]?train(?:ing)?[\])]?)?$`)
	// kerasBar is of Keras 2 and 3 (Progbar.update in keras/utils/generic_utils.py,
	// keras/src/utils/progbar.py).
	kerasBar = regexp.MustCompile(`^\s*(\d+)/(\d+|Unknown) +(?:━|\[[=>.]|- \d|\d+\w* \S+/step)`)
	// otherBar is a count of something that is no bar of those above.
	otherBar = regexp.MustCompile(`^\s*[\w ]+: \[\s*(\d+)/(\d+)\]`)
	// trainerSteps and trainerLog are Hugging Face's (Trainer._inner_training_loop,
	// ProgressCallback.on_log).
	trainerSteps = regexp.MustCompile(`Total optimization steps = ([\d,]+)`)
	trainerLog   = regexp.MustCompile(`^\{'loss': .*'epoch': `)
)

// barUnits are what a step may be called in a bar of tqdm.
var barUnits = map[string]bool{"it/s": true, "s/it": true, "batch/s": true, "s/batch": true, "step/s": true, "s/step": true, "ba/s": true, "s/ba": true}

// barKind is what a text turned out to be.
type barKind int

const (
	noBar       barKind = iota
	trainingBar         // with the step
	anotherBar          // that of a validation, for one
)

// bars follows the bars that an attempt prints.
type bars struct {
	epochs   epochs
	header   int64 // the epoch of the last header, from 0, until its bar is full; -1: none
	zero     bool  // epochs of titles with a total begin with 0
	total    int64 // of the bar of all steps; 0: it is not known
	all      int64 // steps that the training has, as the last bar of it says; 0: it does not
	of       int64 // epochs that the last header says there are; 0: it does not
	untitled []bar // in the order in which they came
	another  string
}

type bar struct{ n, total int64 }

func newBars() *bars { return &bars{header: -1} }

// read takes in a text that is a line, or was written over one.
func (b *bars) read(text string) (kind barKind, step int64) {
	if b.total == 0 {
		b.readTrainer(text)
	}
	if !strings.Contains(text, "/") {
		return noBar, 0
	}
	if strings.Contains(text, "%|") {
		return b.readTqdm(text)
	}
	if m := bracketed.FindStringSubmatch(text); m != nil {
		return b.inEpoch(number(m[1]), 0, number(m[2]), number(m[3]), m[0])
	}
	if m := epochAndOf.FindStringSubmatch(text); m != nil {
		return b.inEpoch(b.fromZero(number(m[1])), number(m[2]), number(m[3]), number(m[4]), m[0])
	}
	if m := epochHeader.FindStringSubmatch(text); m != nil {
		b.header, b.of = b.fromZero(number(m[1])), number(m[2])
		return noBar, 0
	}
	if m := kerasBar.FindStringSubmatch(text); m != nil {
		return b.underHeader(number(m[1]), number(m[2]), m[1]+"/"+m[2])
	}
	if m := otherBar.FindString(text); m != "" {
		return b.other(m), 0
	}
	return noBar, 0
}

func (b *bars) readTqdm(text string) (barKind, int64) {
	m := tqdmBar.FindStringSubmatch(text)
	if m == nil || !barUnits[strings.TrimSpace(m[4])] {
		count, _, _ := strings.Cut(text, " [") // the time goes on if nothing else does
		return b.other(count), 0
	}
	title, n, total := m[1], number(m[2]), number(m[3])
	text = title + m[2] + "/" + m[3]
	if e := tqdmEpoch.FindStringSubmatch(title); e != nil {
		epoch, of := number(e[1]), int64(0)
		if e[2] != "" {
			epoch, of = b.fromZero(epoch), number(e[2])
		}
		return b.inEpoch(epoch, of, n, total, text)
	}
	switch {
	case title == "Steps" || title == "" && total == b.total:
		b.all = max(0, total)
		return trainingBar, n
	case title == "" && b.header >= 0:
		return b.underHeader(n, total, text)
	case title == "":
		b.note(bar{n, total})
	}
	return b.other(text), 0
}

// note keeps a bar without a title, which may turn out to be that of all steps.
func (b *bars) note(new bar) {
	const most = 10
	for i := range b.untitled {
		if b.untitled[i].total == new.total {
			b.untitled[i].n = new.n
			return
		}
	}
	if len(b.untitled) < most {
		b.untitled = append(b.untitled, new)
	}
}

// readTrainer takes in what Hugging Face's Trainer prints beside its bar, which is the
// first that is not full: an evaluation comes later, and is over when there is a log.
func (b *bars) readTrainer(text string) {
	if strings.Contains(text, "optimization steps") {
		if m := trainerSteps.FindStringSubmatch(text); m != nil {
			b.total = number(strings.ReplaceAll(m[1], ",", ""))
		}
	}
	if !strings.HasPrefix(text, "{") || !trainerLog.MatchString(text) {
		return
	}
	for _, u := range b.untitled {
		if u.n < u.total {
			b.total = u.total
			return
		}
	}
}

// fromZero is the number of an epoch from a title that has their total.
func (b *bars) fromZero(epoch int64) int64 {
	b.zero = b.zero || epoch == 0
	if b.zero {
		return epoch
	}
	return epoch - 1
}

// underHeader is a bar that belongs to the last header, or to none.
func (b *bars) underHeader(n, total int64, text string) (barKind, int64) {
	switch {
	case b.header < 0:
		return b.other(text), 0
	case total < 0 && b.header == 0: // Keras does not know it in the first epoch
		return trainingBar, n
	}
	kind, step := b.inEpoch(b.header, b.of, n, total, text)
	if n == total {
		b.header = -1 // what follows is another's
	}
	return kind, step
}

// inEpoch is a bar at n of total in an epoch, counted from 0, of as many as of says; 0: it
// does not say.
func (b *bars) inEpoch(epoch, of, n, total int64, text string) (barKind, int64) {
	if step, ok := b.epochs.step(epoch, n, total); ok {
		b.all = 0
		if !b.zero { // else the last epoch may have that number, or the one before
			b.all = b.epochs.all(of)
		}
		return trainingBar, step
	}
	return b.other(text), 0
}

// other records a bar that shows no step, if it has moved.
func (b *bars) other(text string) barKind {
	if text == b.another {
		return noBar
	}
	b.another = text
	return anotherBar
}

// epochs converts positions in epochs to steps.
type epochs struct {
	known        bool
	epoch, total int64 // of the present one
	before       int64 // steps before that epoch
}

// step returns the number of steps made at position n of total in an epoch, counted from 0;
// false if that is no position of the training, as in a validation beside it.
func (e *epochs) step(epoch, n, total int64) (int64, bool) {
	switch {
	case epoch < 0 || n < 0 || total <= 0 || n > total || epoch > mostSteps/total:
		return 0, false
	case !e.known:
		*e = epochs{true, epoch, total, epoch * total}
	case epoch == e.epoch && total != e.total, epoch < e.epoch:
		return 0, false
	case epoch > e.epoch:
		e.before += (epoch - e.epoch) * e.total
		e.epoch, e.total = epoch, total
	}
	return e.before + n, true
}

// all returns the steps of so many epochs, those that are to come as long as the present one;
// 0 if it has more than them.
func (e *epochs) all(of int64) int64 {
	if of <= e.epoch || of > mostSteps/e.total {
		return 0
	}
	return e.before + (of-e.epoch)*e.total
}

// number parses digits; -1 if they are no number, or one that is too large.
func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n > mostSteps {
		return -1
	}
	return n
}
