// Command cmd runs programs of many frameworks, loses something of each, and prints the
// table.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"holdfast/test/programs"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "programs:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	begin := time.Now()
	o := programs.Options{Log: func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "%6.1f %s\n", time.Since(begin).Seconds(), fmt.Sprintf(format, args...))
	}}
	flag.StringVar(&o.Submit, "submit", "bin/yarn-submit", "the yarn-submit `binary`")
	flag.StringVar(&o.Examples, "examples", "examples", "the `directory` of the programs")
	flag.BoolVar(&o.Local, "local", false, "run jobs on this machine, without Hadoop; no node is lost then")
	only := flag.String("only", "", "some programs or families, by `name`, separated by commas (default all)")
	list := flag.Bool("list", false, "only print what programs there are")
	flag.Parse()
	var names []string
	if *only != "" {
		names = strings.Split(*only, ",")
	}
	chosen, unknown := programs.Select(names)
	if len(unknown) > 0 {
		return fmt.Errorf("there is no program or family %s: -list prints those that there are", strings.Join(unknown, ", "))
	}
	if *list {
		for _, p := range chosen {
			fmt.Println(p.Name)
		}
		return nil
	}
	results, err := programs.Run(ctx, o, chosen)
	err = errors.Join(err, programs.Print(os.Stdout, results))
	for _, r := range results {
		if failed := r.Failures(); len(failed) > 0 && err == nil {
			err = errors.New("not all is well: see below the table")
		}
	}
	return err
}
