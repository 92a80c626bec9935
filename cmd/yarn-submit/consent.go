package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/client"
)

// asker has what changes checkpoints agreed to by a person at a terminal. Where
// none is there, only --yes agrees.
type asker struct {
	cmd     *cobra.Command
	yes     bool // --yes
	unasked bool // somebody would have had to be asked
}

// given reports whether the question is answered with yes.
func (a *asker) given(question string) bool {
	if a.yes {
		return true
	}
	if width() == 0 {
		a.unasked = true
		return false
	}
	fmt.Fprintf(a.cmd.OutOrStdout(), "%s [y/N] ", question)
	answer, _ := bufio.NewReader(os.Stdin).ReadString('\n') // no answer is no
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}

// err is what a script must hear of: that nothing was done because nobody could
// be asked. That a person has said no is none.
func (a *asker) err() error {
	if !a.unasked {
		return nil
	}
	return client.Usagef("nothing was changed, for want of a terminal to ask on: add --yes to agree to the above")
}
