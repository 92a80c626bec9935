package mount_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	randomSeed  = flag.Uint64("random.seed", 1, "the first sequence of TestRandomCalls; 0: another one each time")
	randomRuns  = flag.Int("random.runs", 60, "how many sequences")
	randomCalls = flag.Int("random.calls", 120, "calls in each")
)

// TestRandomCalls makes random sequences of calls on a mount and on tmpfs: the
// answers must be the same. A sequence that fails is shortened and printed; its
// seed replays it:
//
//	go test ./hdfsckpt/mount -run TestRandomCalls -random.seed 7 -random.runs 1
func TestRandomCalls(t *testing.T) {
	b, store := localBox(t)
	randomly(t, *randomRuns, b)
	noLeftovers(t, store)
}

// TestRandomCallsOfTwoTasks makes them by turns in two tasks, each with a mount
// of its own. Only what is closed is in it: the next call of the other task sees
// it.
func TestRandomCallsOfTwoTasks(t *testing.T) {
	b, store := localBox(t)
	randomly(t, *randomRuns/3, b, newBox(t, store, ""))
	noLeftovers(t, store)
}

func randomly(t *testing.T, runs int, boxes ...*box) {
	first := *randomSeed
	if first == 0 {
		first = uint64(time.Now().UnixNano()) % 1_000_000_000
	}
	c := &comparison{boxes: boxes, oracle: boxes[0].oracle(t)}
	for seed := first; seed < first+uint64(runs); seed++ {
		lines := randomScript(rand.New(rand.NewPCG(seed, 1)), *randomCalls, len(boxes) == 1)
		if _, differs := c.differs(lines); !differs {
			continue
		}
		lines = c.shorten(lines)
		what, _ := c.differs(lines)
		t.Fatalf("-random.seed %d: %s", seed, what)
	}
	t.Logf("seeds %d to %d, %d calls each: the same as on tmpfs", first, first+uint64(runs)-1, *randomCalls)
}

// comparison runs scripts on a mount and on tmpfs, each in a new directory.
type comparison struct {
	boxes  []*box // that make the calls by turns
	oracle string
	runs   int
}

// differs tells where a script's answers differ.
func (c *comparison) differs(lines []string) (what string, differs bool) {
	if len(lines) == 0 {
		return "", false
	}
	name := fmt.Sprintf("/run-%d", c.runs)
	c.runs++
	all := slices.Concat(lines, afterwards)
	right := c.answers(c.boxes[:1], func(*box) string { return c.oracle + name }, len(lines), all)
	got := c.answers(c.boxes, func(b *box) string { return b.dir + name }, len(lines), all)
	for i, line := range all {
		if right[i] != got[i] && !(c.boxes[0].onHDFS && got[i] == "ESTALE") { // docs/filesystem.md
			return fmt.Sprintf("%s\n\tis answered %s, and on tmpfs %s%s", line, got[i], right[i], after(lines[:min(i, len(lines))], got)), true
		}
	}
	return "", false
}

// afterwards looks at all that is there once everything is closed.
var afterwards = func() (lines []string) {
	for _, dir := range []string{"", "d/", "e/", "d/e/"} {
		for _, name := range strings.Fields("a b c d e .") {
			lines = append(lines, "get "+dir+name, "list "+dir+name, "stat "+dir+name)
		}
	}
	return lines
}()

// answers runs a script in a new directory, and removes it. After some lines
// everything is closed.
func (c *comparison) answers(boxes []*box, dir func(*box) string, closed int, lines []string) (answers []string) {
	first := boxes[0]
	first.task.do(call{Op: "mkdir", Path: dir(first), Mode: 0o755})
	if len(boxes) == 1 {
		answers = append(first.task.script(dir(first), lines[:closed]), first.task.script(dir(first), lines[closed:])...)
	} else {
		for i, line := range lines {
			b := boxes[i%len(boxes)]
			answers = append(answers, b.task.script(dir(b), []string{line})...)
		}
	}
	first.task.do(call{Op: "removeall", Path: dir(first)})
	return answers
}

// shorten leaves out what is not needed for a difference.
func (c *comparison) shorten(lines []string) []string {
	for piece := len(lines) / 2; piece > 0; {
		cut := false
		for i := 0; i+piece <= len(lines); i += piece {
			shorter := slices.Delete(slices.Clone(lines), i, i+piece)
			if _, differs := c.differs(shorter); differs {
				lines, cut = shorter, true
				i -= piece
			}
		}
		if !cut {
			piece /= 2
		}
	}
	return lines
}

// randomScript makes calls on few names and descriptors, so that they meet; on
// names only if nothing is to stay open.
func randomScript(r *rand.Rand, n int, open bool) (lines []string) {
	pick := func(of string) string { all := strings.Fields(of); return all[r.IntN(len(all))] }
	name := func() string { return pick("a a b b c d e d/a d/b d/c d/e e/a e/b e/d d/e/a d/e/b") }
	handle := func() string { return pick("1 2 3 4 5") }
	off := func() string { return pick("0 0 1 5 10 100 4095 4096 5000 70000 1100000") }
	text := func() string {
		return pick("a bb ccc defghijkl") + pick("* * * *100 *1000 *5000 *40000 *130000")
	}
	type kind struct {
		weight int
		make   func() string
	}
	onDescriptors := []kind{
		{8, func() string {
			flags := pick("r w rw rw") + pick(", ,creat ,creat ,creat,trunc ,creat,excl ,trunc ,append ,creat,append")
			return "open " + handle() + " " + name() + " " + strings.TrimSuffix(flags, ",") + " " + pick("644 600 755")
		}},
		{6, func() string { return "close " + handle() }},
		{2, func() string { return "dup " + handle() + " " + handle() }},
		{8, func() string { return "write " + handle() + " " + text() }},
		{4, func() string { return "pwrite " + handle() + " " + off() + " " + text() }},
		{4, func() string { return "read " + handle() + " " + off() }},
		{4, func() string { return "pread " + handle() + " " + off() + " " + off() }},
		{2, func() string { return "seek " + handle() + " " + off() + " " + pick("set cur end") }},
		{2, func() string { return "ftruncate " + handle() + " " + off() }},
		{1, func() string { return "mmap " + handle() + " " + pick("1 10 5000") }},
		{1, func() string { return "fsync " + handle() }},
		{3, func() string { return "fstat " + handle() }},
		{2, func() string { return "samefile " + handle() + " " + name() }},
		{1, func() string { return "fchmod " + handle() + " " + pick("700 755 711") }},
	}
	calls := []kind{
		{2, func() string { return "truncate " + name() + " " + off() }},
		{3, func() string { return "stat " + name() }},
		{4, func() string { return "get " + name() }},
		{4, func() string { return "put " + name() + " " + text() }},
		{3, func() string { return "list " + pick(". . d e d/e a") }},
		{6, func() string { return "rename " + name() + " " + name() + " " + pick("noreplace * * * * *") }},
		{3, func() string { return "unlink " + name() }},
		{4, func() string { return "mkdir " + name() + " " + pick("755 700") }},
		{2, func() string { return "rmdir " + name() }},
		{1, func() string { return "chmod " + name() + " " + pick("700 755 711") }},
		{1, func() string { return "utimes " + name() + " 5 " + pick("7 9") }},
	}
	if open {
		calls = append(calls, onDescriptors...)
	}
	total := 0
	for _, c := range calls {
		total += c.weight
	}
	for range n {
		w := r.IntN(total)
		for _, c := range calls {
			if w -= c.weight; w < 0 {
				lines = append(lines, strings.ReplaceAll(strings.TrimSuffix(c.make(), "*"), "* ", " "))
				break
			}
		}
	}
	return lines
}
