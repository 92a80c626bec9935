package main

import (
	"io"

	"github.com/spf13/cobra"

	"holdfast/client"
	"holdfast/cmd/yarn-submit/cli"
)

// bashHelpers are what the script of cobra takes of the package bash-completion, for machines
// where that is not loaded: the words of the line, as they are where = and : do not part them,
// and the names of files and directories.
const bashHelpers = `# For shells without the package bash-completion.
if ! declare -F _get_comp_words_by_ref >/dev/null 2>&1; then
    _get_comp_words_by_ref()
    {
        local i word rest=$COMP_LINE
        words=() cword=0
        for ((i = 0; i < ${#COMP_WORDS[@]}; i++)); do
            word=${COMP_WORDS[i]}
            if ((${#words[@]} > 0)) && [[ -z $rest || $rest != [[:space:]]* ]]; then
                words[${#words[@]}-1]+=$word
            else
                rest=${rest#"${rest%%[![:space:]]*}"}
                words+=("$word")
            fi
            rest=${rest#"$word"}
            ((i == COMP_CWORD)) && cword=$((${#words[@]} - 1))
        done
        cur=${words[cword]} prev=
        ((cword > 0)) && prev=${words[cword-1]}
        return 0
    }
fi
if ! declare -F _filedir >/dev/null 2>&1; then
    _filedir()
    {
        local kind=-f
        [[ ${1-} == -d ]] && kind=-d
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen $kind -- "$cur")
    }
fi

`

// addCompletion adds the command completion, whose script for bash needs no package.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	all, _, err := root.Find([]string{"completion"})
	if err != nil || all == root {
		panic("cobra has no completion")
	}
	all.Args = cobra.ArbitraryArgs
	all.RunE = func(cmd *cobra.Command, args []string) error {
		if err := cli.UnknownCommand(cmd, args); err != nil {
			return err
		}
		return client.Usagef("say for which shell: write yarn-submit completion bash|zsh|fish")
	}
	bash, _, err := root.Find([]string{"completion", "bash"})
	if err != nil || bash.Name() != "bash" {
		panic("cobra has no completion for bash")
	}
	script := bash.RunE
	bash.RunE = func(cmd *cobra.Command, args []string) error {
		if _, err := io.WriteString(cmd.OutOrStdout(), bashHelpers); err != nil {
			return err
		}
		return script(cmd, args)
	}
	bash.Long = `Bash prints a script with which bash completes commands, flags and values, jobs,
their tasks and roles, and the steps of checkpoints. The package bash-completion
need not be there.

To load it in the present shell:

	source <(yarn-submit completion bash)

To load it in every new one, add that line to ~/.bashrc, or, where
bash-completion is installed, execute once:

	yarn-submit completion bash > ~/.local/share/bash-completion/completions/yarn-submit
`
}
