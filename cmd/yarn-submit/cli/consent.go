package cli

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/client"
)

// Asker has what changes checkpoints agreed to by a person at a terminal. Where
// none is there, only --yes agrees.
type Asker struct {
	Cmd     *cobra.Command
	Yes     bool // --yes
	unasked bool // somebody would have had to be asked
}

// Given reports whether the question is answered with yes. The error is that of the command's
// context, if that ends first.
func (a *Asker) Given(question string) (bool, error) {
	if a.Yes {
		return true, nil
	}
	if Width() == 0 {
		a.unasked = true
		return false, nil
	}
	fmt.Fprintf(a.Cmd.OutOrStdout(), "%s [y/N] ", question)
	answered := make(chan string, 1)
	go func() { // ends with the process, if nobody answers
		answer, _ := bufio.NewReader(os.Stdin).ReadString('\n') // no answer is no
		answered <- strings.ToLower(strings.TrimSpace(answer))
	}()
	select {
	case answer := <-answered:
		return answer == "y" || answer == "yes", nil
	case <-a.Cmd.Context().Done():
		fmt.Fprintln(a.Cmd.OutOrStdout())
		return false, a.Cmd.Context().Err()
	}
}

// Err is what a script must hear of: that nothing was done because nobody could
// be asked. That a person has said no is none.
func (a *Asker) Err() error {
	if !a.unasked {
		return nil
	}
	return client.Usagef("nothing was changed, for want of a terminal to ask on: add --yes to agree to the above")
}
