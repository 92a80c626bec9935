// Command cmd breaks a real cluster under real TensorFlow, and prints how long
// each fault kept it from training.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"holdfast/test/faults"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	begin := time.Now()
	o := faults.Options{Log: func(format string, args ...any) {
		fmt.Printf("%6.1f %s\n", time.Since(begin).Seconds(), fmt.Sprintf(format, args...))
	}}
	flag.StringVar(&o.Submit, "submit", "bin/yarn-submit", "the yarn-submit `binary`")
	flag.StringVar(&o.Script, "script", "", "the `program` that trains (default that of the example monitored-session)")
	flag.StringVar(&o.Examples, "examples", "", "the `directory` of the programs that scenarios run (default this module's)")
	flag.Uint64Var(&o.Seed, "seed", 1, "of the order, of pairs and of what is struck")
	flag.IntVar(&o.PerJob, "per-job", 8, "a job trains for as long as so many `rounds` take at most")
	flag.IntVar(&o.Spares, "spares", 0, "spare containers of a job")
	flag.BoolVar(&o.Warm, "warm", false, "wait for warm interpreters before each round")
	flag.BoolVar(&o.Cold, "cold", false, "keep no warm interpreters")
	flag.BoolVar(&o.Saving, "saving", false, "strike while a checkpoint is being saved")
	flag.BoolVar(&o.Standby, "standby", false, "give HDFS a second NameNode, which takes over from one that is struck")
	flag.DurationVar(&o.Within, "within", 0, "`how soon` a round's later faults strike (default 8s)")
	flag.Func("when", "they strike so soon after a task says what matches a `pattern`", func(text string) (err error) {
		o.When, err = regexp.Compile(text)
		return err
	})
	rounds := flag.Int("rounds", 1, "`how often` each fault strikes alone")
	pairs := flag.Int("pairs", 0, "`how many` pairs of faults strike")
	only := flag.String("only", "", "some of: "+strings.Join(slices.Concat(faults.Rounds(), faults.ScenarioNames()), ", ")+", or other pairs such as \"kill ps + kill AM\", separated by commas (default all)")
	trace := flag.Bool("trace", false, "print what tasks say in each round")
	flag.Parse()
	names := slices.Concat(faults.Rounds(), faults.ScenarioNames())
	if *only != "" {
		names = strings.Split(*only, ",")
	}
	names, o.Scenarios = faults.Scenarios(names)
	var err error
	if o.Rounds, err = faults.Plan(o.Seed, *rounds, *pairs, names); err != nil {
		return err
	}
	if *trace {
		o.Trace = func(line string) { fmt.Println("      ", line) }
	}
	report, err := faults.RunAlone(ctx, o)
	if report != nil {
		fmt.Println()
		err = errors.Join(err, report.Print(os.Stdout))
		for _, f := range report.Failures() {
			err = errors.Join(err, errors.New(f))
		}
	}
	return err
}
