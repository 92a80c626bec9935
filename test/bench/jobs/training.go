package jobs

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"
	"time"

	"holdfast/test/bench"
	"holdfast/test/faults"
	"holdfast/test/pyenv"
)

// loss is one of a parameter server, under real TensorFlow.
type loss struct {
	fault string // of package faults
	what  string
	aim   float64 // seconds
	peers string  // what it costs elsewhere: seconds, measured on a machine of two processors
}

var warmLosses = []loss{
	{"kill ps", "its process killed, warm", 2.5, "skein 4.1 s and the import; TonY ends the job; TensorFlow by itself, once a server is back at its address, 3.5 or 34"},
	{"kill ps agent", "moved to another container, warm", 3, "behind a name that moves with it 4.1 to 31, behind a proxy 7.7"},
}

// silentLoss aims at the lease of 10 s, and 3 s.
var silentLoss = loss{"cut node", "its host silent", 13, "hangs for more than 76"}

// Training measures what the loss of a parameter server costs the chief of a
// MonitoredTrainingSession, from the loss to its next step.
func (b *Jobs) Training(ctx context.Context) error {
	imports, err := b.imports(ctx)
	if err != nil {
		return err
	}
	b.Title("TensorFlow, 2 parameter servers and 3 workers: from a parameter server's loss to the chief's next step")
	bench.Line(b.Out, "import of TensorFlow by itself", imports.Format(" s", 1))
	warm := warmLosses
	if os.Geteuid() == 0 {
		warm = append(warm[:len(warm):len(warm)], silentLoss)
	} else {
		bench.Line(b.Out, silentLoss.what, "not measured: cutting a host off takes root")
	}
	if err := b.losing(ctx, faults.Options{Warm: true, Spares: 1}, warm...); err != nil {
		return err
	}
	aim := math.Round(10*imports.Median()+20) / 10
	cold := loss{"kill ps agent", "moved to another container, cold", aim, "the same, and the import"}
	if err := b.losing(ctx, faults.Options{Cold: true}, cold); err != nil {
		return err
	}
	fmt.Fprintln(b.Out)
	return nil
}

func (b *Jobs) losing(ctx context.Context, o faults.Options, losses ...loss) error {
	var names []string
	for _, l := range losses {
		names = append(names, l.fault)
	}
	o.Submit = b.Submit
	o.PerJob = 5 // a job that is done with its rounds trains on to its end
	var err error
	if o.Rounds, err = faults.Plan(1, b.Pairs, 0, names); err != nil {
		return err
	}
	report, err := faults.RunAlone(ctx, o)
	if err != nil {
		return err
	}
	for _, wrong := range report.Failures() {
		err = errors.Join(err, errors.New(wrong))
	}
	took := map[string]bench.Series{}
	for _, r := range report.Outcomes {
		took[r.Round.String()] = append(took[r.Round.String()], r.Chief.Seconds())
	}
	for _, l := range losses {
		all := took[l.fault]
		bench.Line(b.Out, l.what, all.Aimed(" s", 1, l.aim))
		bench.Line(b.Out, "  elsewhere", l.peers)
	}
	return err
}

// imports is how long TensorFlow's import takes with nothing beside it.
func (b *Jobs) imports(ctx context.Context) (took bench.Series, err error) {
	python, err := pyenv.TensorFlow(ctx)
	if err != nil {
		return nil, err
	}
	for range b.Pairs {
		begun := time.Now()
		if out, err := exec.CommandContext(ctx, python, "-c", "import tensorflow").CombinedOutput(); err != nil {
			return nil, fmt.Errorf("importing TensorFlow: %w: %s", err, strings.TrimSpace(string(out)))
		}
		took = append(took, time.Since(begun).Seconds())
	}
	return took, nil
}
