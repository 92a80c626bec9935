package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"holdfast/client"
)

// UsageWidth is how wide --help is at most.
const UsageWidth = 80

// WrapUsage has the flags of a command and of those below it written within usageWidth.
func WrapUsage(cmd *cobra.Command) {
	template := cmd.UsageTemplate()
	for _, flags := range []string{".LocalFlags", ".InheritedFlags"} {
		template = strings.ReplaceAll(template, flags+".FlagUsages ", fmt.Sprintf("(%s.FlagUsagesWrapped %d) ", flags, UsageWidth))
	}
	cmd.SetUsageTemplate(template)
}

// Wrapped breaks a text into lines of at most UsageWidth characters, each with its end.
func Wrapped(text string) string {
	var b strings.Builder
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > UsageWidth {
			b.WriteString(line + "\n")
			line = ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	b.WriteString(line + "\n")
	return b.String()
}

// UnknownCommand says that the first of args is no command below cmd; nil if
// there is none.
func UnknownCommand(cmd *cobra.Command, args []string) error {
	if !cmd.HasAvailableSubCommands() {
		return nil
	}
	for _, a := range args {
		if strings.HasPrefix(a, "-") {
			continue
		}
		var known []string
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				known = append(known, c.Name())
			}
		}
		return client.Usagef("%q is not a command of %s: see %[2]s --help%s", a, cmd.CommandPath(), client.DidYouMean(a, known))
	}
	return nil
}

// RefuseUnknownTopics has the command help refuse what is no command, where cobra's own shows
// the help of root.
func RefuseUnknownTopics(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, err := root.Find([]string{"help"})
	if err != nil || help == root {
		return
	}
	show := help.Run
	help.Run = nil
	help.RunE = func(cmd *cobra.Command, args []string) error {
		of, rest, err := root.Find(args)
		if err == nil {
			err = UnknownCommand(of, rest)
		}
		if err == nil {
			show(cmd, args)
		}
		return err
	}
}

// FlagError says what is wrong with a flag, without the texts of the functions
// that could not read it.
func FlagError(cmd *cobra.Command, err error) error {
	see := fmt.Sprintf("see %s --help", cmd.CommandPath())
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	if err := UnknownCommand(cmd, cmd.Flags().Args()); err != nil { // what comes before the flag
		return err
	}
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "":
		var known []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
		name := unknown.GetSpecifiedName()
		return client.Usagef("there is no flag --%s: %s%s", name, see, flags(client.DidYouMean(name, known)))
	case errors.As(err, &invalid):
		f := invalid.GetFlag()
		want, known := wanted[f.Value.Type()]
		if !known {
			return client.Usagef("--%s %s: %w; %s", f.Name, invalid.GetValue(), errors.Unwrap(invalid), see)
		}
		return client.Usagef("--%s %s: write %s; %s", f.Name, invalid.GetValue(), want, see)
	}
	return client.Usagef("%w: %s", err, see)
}

// wanted is what flags of a type take. Those of a job say it themselves.
var wanted = map[string]string{
	"int": "a whole number", "int64": "a whole number", "bool": "true or false", "float64": "a number",
	"duration":    "a length of time, as in 90s, 10m or 2h",
	"stringSlice": "a list, separated by commas",
}

// flags puts dashes before the names that a question has.
func flags(question string) string {
	question = strings.Replace(question, "did you mean ", "did you mean --", 1)
	return strings.ReplaceAll(question, " or ", " or --")
}
