package spec

import (
	"encoding/csv"
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
	pb "google.golang.org/protobuf/proto"

	"holdfast/client"
	"holdfast/internal/hadoop/yarn"
	"holdfast/proto"
)

// command is a list of words, or a text for the shell. A flag is a text.
func command(p *[]string) kind {
	shell := func(text string) error {
		*p = []string{"/bin/sh", "-c", text}
		return nil
	}
	return kind{
		placeholder: "TEXT",
		set:         shell,
		decode: func(n *yaml.Node) error {
			if n.Kind == yaml.ScalarNode {
				return shell(n.Value)
			}
			return eachItem(n, "command", func(word string) error { *p = append(*p, word); return nil })
		},
		encode: func() any { return *p },
	}
}

// variables are environment variables.
func variables(p *map[string]string) kind {
	put := func(name, value string) {
		if *p == nil {
			*p = map[string]string{}
		}
		(*p)[name] = value
	}
	return kind{
		placeholder: "NAME=VALUE", repeated: true,
		set: func(text string) error {
			name, value, ok := strings.Cut(text, "=")
			if !ok {
				return errors.New("write NAME=VALUE")
			}
			put(name, value)
			return nil
		},
		decode: func(n *yaml.Node) error {
			return eachPair(n, "env", func(name string, v *yaml.Node) error {
				value, err := scalar(v, name)
				put(name, value)
				return err
			})
		},
		encode: func() any { return maps.Clone(*p) },
	}
}

// amounts are amounts of YARN's resource types: NAME=N[UNIT] in flags, a mapping in YAML.
func amounts(p *map[string]*proto.Amount) kind {
	put := func(name, text string) error {
		if own := yarn.OptionOfType(name); own != "" {
			return fmt.Errorf("%s has an option of its own: write --ROLE-%s in its place", name, own)
		}
		if name == "" || strings.ContainsFunc(name, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }) {
			return errors.New("write NAME=N, NAME as YARN calls the resource type, as in yarn.io/fpga=1")
		}
		a, err := yarn.ParseAmount(text)
		if err != nil {
			return err
		}
		if *p == nil {
			*p = map[string]*proto.Amount{}
		}
		if (*p)[name] = (&proto.Amount{Value: a.Value, Unit: a.Unit}); a.Value == 0 {
			delete(*p, name)
		}
		return nil
	}
	return kind{
		placeholder: "NAME=N[UNIT]", repeated: true,
		set: func(text string) error {
			name, amount, ok := strings.Cut(text, "=")
			if !ok {
				return errors.New("write NAME=N, as in yarn.io/fpga=1")
			}
			return put(name, amount)
		},
		decode: func(n *yaml.Node) error {
			return eachPair(n, "resource", func(name string, v *yaml.Node) error {
				text, err := scalar(v, name)
				if err == nil {
					err = put(name, text)
				}
				if err != nil {
					return errorAt(v, "%s: %w", name, err)
				}
				return nil
			})
		},
		encode: func() any {
			if len(*p) == 0 {
				return nil
			}
			all := map[string]string{}
			for name, a := range yarn.Amounts(*p) {
				all[name] = a.String()
			}
			return all
		},
	}
}

// mounts are mounts of container images. A mount without a mode is read-only.
func mounts(p *[]string) kind {
	add := func(text string) error {
		parts := strings.Split(text, ":")
		if len(parts) == 2 {
			parts = append(parts, "ro")
		}
		if len(parts) != 3 || !path.IsAbs(parts[0]) || !path.IsAbs(parts[1]) || parts[2] != "ro" && parts[2] != "rw" || strings.ContainsAny(text, ", \t\n") {
			return errors.New("write /ON/THE/NODE:/IN/THE/IMAGE:ro, or :rw")
		}
		*p = append(*p, strings.Join(parts, ":"))
		return nil
	}
	return kind{
		placeholder: "PATH:PATH[:MODE],...", repeated: true,
		set: func(text string) error {
			for _, m := range strings.Split(text, ",") {
				if err := add(m); err != nil {
					return err
				}
			}
			return nil
		},
		decode: func(n *yaml.Node) error { return eachItem(n, "image-mounts", add) },
		encode: func() any { return *p },
	}
}

// inputs are files or archives.
func inputs(d *Draft, archive bool) kind {
	what, placeholder, extensions := "files", "PATH,...", []cobra.Completion(nil)
	directive := cobra.ShellCompDirectiveDefault
	if archive {
		what, placeholder, directive = "archives", "PATH#NAME,...", cobra.ShellCompDirectiveFilterFileExt
		for _, s := range archiveSuffixes {
			extensions = append(extensions, strings.TrimPrefix(s, "."))
		}
	}
	add := func(text string) error {
		in, err := ParseInput(text, d.dir, archive)
		if err == nil {
			err = d.addInput(in)
		}
		return err
	}
	return kind{
		placeholder: placeholder, repeated: true,
		set:    func(text string) error { return eachWord(text, add) },
		decode: func(n *yaml.Node) error { return eachItem(n, what, add) },
		encode: func() any {
			var list []string
			for _, in := range d.Inputs {
				if in.Archive == archive {
					list = append(list, in.Path+"#"+in.Name)
				}
			}
			return list
		},
		complete: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return extensions, directive
		},
	}
}

// roles are NAME=COUNT in flags; in YAML, mappings of a role's options.
func roles(d *Draft) kind {
	return kind{
		placeholder: "NAME=N", repeated: true,
		set: func(text string) error {
			name, count, ok := strings.Cut(text, "=")
			if !ok || counts(d.Role(name)).set(count) != nil {
				return errors.New("write NAME=COUNT or NAME=MIN..MAX, as in --role reader=2")
			}
			return nil
		},
		decode: func(n *yaml.Node) error {
			return eachPair(n, "roles", func(name string, v *yaml.Node) error {
				role := d.Role(name)
				return decodeWith(v, func(n *yaml.Node) error {
					if n.Kind == yaml.ScalarNode {
						return findOption(roleOptions, "count").read(role, n)
					}
					return decode(n, "the role "+name, roleOptions, role)
				})
			})
		},
		encode: func() any {
			var m mapping
			for _, r := range d.Job.Roles {
				m.put(r.Name, encode(roleOptions, r))
			}
			if len(m.content) == 0 {
				return nil
			}
			return m.node()
		},
	}
}

// checkpoints are PATH=URI in flags, which options of the directory may follow.
func checkpoints(d *Draft) kind {
	return kind{
		placeholder: "PATH=URI", repeated: true,
		set: func(text string) error {
			c, err := parseCheckpoint(text)
			if err == nil {
				err = d.setCheckpoint(c)
			}
			return err
		},
		decode: func(n *yaml.Node) error {
			return eachPair(n, "checkpoints", func(p string, v *yaml.Node) error {
				c := &proto.CheckpointSpec{Path: p}
				err := decodeWith(v, func(n *yaml.Node) error {
					if n.Kind == yaml.ScalarNode {
						c.Uri = n.Value
						return nil
					}
					return decode(n, "the checkpoint directory "+p, checkpointOptions, c)
				})
				if err != nil {
					return err
				}
				if !strings.Contains(c.Uri, "://") && c.Uri != "" {
					c.Uri = d.below(c.Uri)
				}
				if err := d.setCheckpoint(c); err != nil {
					return errorAt(v, "%w", err)
				}
				return nil
			})
		},
		encode: func() any {
			var m mapping
			for _, c := range d.Job.Checkpoints {
				shown := &proto.CheckpointSpec{Uri: c.Uri, Format: c.Format, Marker: c.Marker, QuietSeconds: c.QuietSeconds, Share: c.Share}
				if !d.Job.Local && filepath.IsAbs(shown.Uri) {
					shown.Uri = "file://" + shown.Uri
				}
				n := encode(checkpointOptions, shown)
				if len(n.Content) == 2 { // the URI alone
					n = n.Content[1]
				}
				m.put(c.Path, n)
			}
			if len(m.content) == 0 {
				return nil
			}
			return m.node()
		},
	}
}

// parseCheckpoint parses PATH=URI[,OPTION=VALUE]. A comma that no option follows is
// part of the URI, unless what follows is almost one.
func parseCheckpoint(text string) (*proto.CheckpointSpec, error) {
	p, uri, ok := strings.Cut(text, "=")
	if !ok {
		return nil, errors.New("write PATH=URI, PATH as the script spells it, as in ./train_logs=hdfs:///user/me/train_logs")
	}
	c := &proto.CheckpointSpec{Path: p}
	for {
		i := strings.LastIndexByte(uri, ',')
		key, value, ok := strings.Cut(uri[i+1:], "=")
		o := findOption(checkpointOptions, key)
		if i < 0 || !ok || o == nil {
			if i >= 0 && ok {
				if meant := client.DidYouMean(key, names(checkpointOptions)); meant != "" {
					return nil, fmt.Errorf("%s is no option of a checkpoint directory%s", key, meant)
				}
			}
			c.Uri = uri
			return c, nil
		}
		if err := o.kind(c).set(value); err != nil {
			return nil, fmt.Errorf("%s is %q: %w", key, value, err)
		}
		uri = uri[:i]
	}
}

// below makes a relative path relative to the draft's directory.
func (d *Draft) below(p string) string {
	if d.dir == "" || p == "" || filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(d.dir, p)
}

// addInput adds an input, or replaces the one with its name that an earlier source has given.
// Another of the same source is an error.
func (d *Draft) addInput(in Input) error {
	for i, other := range d.Inputs {
		if other.Name != in.Name {
			continue
		}
		if d.repeats("input "+in.Name) && other != in {
			return client.Usagef("%s and %s would both stand at %s in the tasks' working directory: rename one of them by PATH#NAME", other.Path, in.Path, in.Name)
		}
		d.Inputs[i] = in
		return nil
	}
	d.repeats("input " + in.Name)
	d.Inputs = append(d.Inputs, in)
	return nil
}

// setCheckpoint adds a checkpoint directory, or replaces the one with its path that an earlier
// source has given. Another of the same source is an error.
func (d *Draft) setCheckpoint(c *proto.CheckpointSpec) error {
	name := "checkpoint " + path.Clean(c.Path)
	for i, other := range d.Job.Checkpoints {
		if path.Clean(other.Path) != path.Clean(c.Path) {
			continue
		}
		same := pb.Clone(other).(*proto.CheckpointSpec)
		same.Path = c.Path // which may be spelled in another way
		if d.repeats(name) && !pb.Equal(same, c) {
			return client.Usagef("the checkpoints of %s are to go to %s and to %s: leave out one of them", other.Path, other.Uri, c.Uri)
		}
		d.Job.Checkpoints[i] = c
		return nil
	}
	d.repeats(name)
	d.Job.Checkpoints = append(d.Job.Checkpoints, c)
	return nil
}

// repeats records that the present source gives something, and reports whether it did before.
func (d *Draft) repeats(name string) bool {
	if d.named == nil {
		d.named = map[string]bool{}
	}
	before := d.named[name]
	d.named[name] = true
	return before
}

// eachWord calls add with each of the words in a list that commas separate, until it fails.
func eachWord(text string, add func(string) error) error {
	list, err := csv.NewReader(strings.NewReader(text)).Read()
	if err != nil {
		return errors.New("write a list, separated by commas")
	}
	for _, word := range list {
		if err := add(word); err != nil {
			return err
		}
	}
	return nil
}
