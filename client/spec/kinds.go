package spec

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"holdfast/internal/hadoop/acl"
	"holdfast/proto"
)

// kind reads, checks and writes the values of a field. Flags and YAML use the same
// syntax.
type kind struct {
	placeholder string // of a value, in --help; empty: a switch
	// set parses a value and stores it in the field, or adds it to a list. The error
	// says what to write instead.
	set func(text string) error
	// decode reads YAML values that are lists or mappings; nil if the kind has only
	// scalars.
	decode func(*yaml.Node) error
	// encode returns the value for YAML, in a form that set or decode accepts; nil if
	// the field is unset.
	encode func() any
	// check returns an error that says what to write if the value is not usable; nil if
	// set accepts only usable values.
	check func() error
	// complete is the shell completion of values; nil if there is none.
	complete cobra.CompletionFunc
	repeated bool // set adds to a list
	secret   bool // values can hold a secret, and messages do not show them
	// optional means that the zero value differs from an unset field.
	optional bool
}

// unset marks a field that was not given where zero is a value.
const unset = math.MinInt32

func text(p *string, placeholder string) kind {
	return kind{
		placeholder: placeholder,
		set:         func(text string) error { *p = text; return nil },
		encode:      func() any { return *p },
	}
}

// choice is a text with known values, which shells complete.
func choice(p *string, known []string) kind {
	k := text(p, "NAME")
	k.complete = cobra.FixedCompletions(known, cobra.ShellCompDirectiveNoFileComp)
	return k
}

// oneOf is a choice that must be one of the known values.
func oneOf(p *string, known []string) kind {
	k := choice(p, known)
	k.check = func() error {
		if *p != "" && !slices.Contains(known, *p) {
			return fmt.Errorf("write %s", alternatives(known))
		}
		return nil
	}
	return k
}

// image is the name of a container image, as its runtime spells it.
func image(p *string) kind {
	k := text(p, "IMAGE")
	k.check = func() error {
		if strings.ContainsFunc(*p, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }) || strings.HasPrefix(*p, "-") {
			return errors.New("write REGISTRY/NAME:TAG, or what the runtime calls the image")
		}
		return nil
	}
	return k
}

// accessList is an access control list in Hadoop's format.
func accessList(p *string) kind {
	k := text(p, "USERS[ GROUPS]")
	k.check = func() error { _, err := acl.Parse(*p); return err }
	return k
}

// webPath is the path of a URL, which may have a query.
func webPath(p *string) kind {
	k := text(p, "PATH")
	k.check = func() error {
		if u, err := url.ParseRequestURI(*p); *p != "" && (err != nil || u.IsAbs() || u.Host != "" || strings.ContainsAny(*p, "\\ ") || strings.HasPrefix(*p, "//")) {
			return errors.New("write a path that begins with a slash, as in / or /lab?reset")
		}
		return nil
	}
	return k
}

// webAddress is an absolute URL of HTTP, without a query.
func webAddress(p *string) kind { return httpURL(p, false) }

// webhook is an absolute URL of HTTP, which may have a query. Such URLs hold tokens.
func webhook(p *string) kind {
	k := httpURL(p, true)
	k.secret = true
	return k
}

func httpURL(p *string, query bool) kind {
	k := text(p, "URL")
	k.check = func() error {
		u, err := url.Parse(*p)
		if *p != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.RawQuery != "" && !query || u.Fragment != "") {
			return errors.New("write http://HOST/PATH or https://HOST/PATH")
		}
		return nil
	}
	return k
}

// file is a local file; a relative name is relative to the draft's directory.
func file(p *string, d *Draft) kind {
	return kind{
		placeholder: "FILE",
		set:         func(text string) error { *p = d.below(text); return nil },
		encode: func() any {
			if abs, err := filepath.Abs(*p); err == nil && *p != "" {
				return abs
			}
			return *p
		},
		complete: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		},
	}
}

// boolean is a switch. YAML also accepts yes, no, on and off.
func boolean(p *bool) kind {
	wanted := errors.New("write true or false")
	return kind{
		set: func(text string) error {
			v, err := strconv.ParseBool(text)
			if err != nil {
				return wanted
			}
			*p = v
			return nil
		},
		decode: func(n *yaml.Node) error {
			if n.Kind != yaml.ScalarNode || n.Decode(p) != nil {
				return errorAt(n, "%q is neither true nor false", n.Value)
			}
			return nil
		},
		encode: func() any { return *p },
	}
}

func number(p *int32, least, most int32) kind {
	return kind{
		placeholder: "N",
		set: func(text string) error {
			v, err := strconv.ParseInt(text, 10, 32)
			if err != nil {
				return errors.New("write a whole number")
			}
			*p = int32(v)
			return nil
		},
		encode: func() any { return *p },
		check: func() error {
			if *p < least || *p > most {
				return fmt.Errorf("write a number from %d to %d", least, most)
			}
			return nil
		},
	}
}

// factor is a number from least to most, which need not be whole.
func factor(p *float64, least, most float64) kind {
	return kind{
		placeholder: "FACTOR",
		set: func(text string) error {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return errors.New("write a number, as in 1.5")
			}
			*p = v
			return nil
		},
		encode: func() any { return *p },
		check: func() error {
			if !(*p >= least && *p <= most) {
				return fmt.Errorf("write a number from %g to %g", least, most)
			}
			return nil
		},
	}
}

// counts is a number of tasks, or the least and the most: "4..16", or in YAML
// {min: 4, max: 16, multiple: 2}.
func counts(r *proto.RoleSpec) kind {
	k := number(&r.Count, 0, maxCount)
	one := k.set
	k.set = func(text string) error {
		least, most, isRange := strings.Cut(text, "..")
		if !isRange {
			return one(text)
		}
		if number(&r.Min, 1, maxCount).set(least) != nil || one(most) != nil || r.Min < 1 {
			return errors.New("write a whole number, or MIN..MAX, as in 4..16")
		}
		return nil
	}
	k.decode = func(n *yaml.Node) error {
		if n.Kind == yaml.ScalarNode {
			if err := k.set(n.Value); err != nil {
				return errorAt(n, "%q is no number of tasks: %w", n.Value, err)
			}
			return nil
		}
		fields := map[string]*int32{"min": &r.Min, "max": &r.Count, "multiple": &r.Multiple}
		return eachPair(n, "count", func(name string, v *yaml.Node) error {
			field := fields[name]
			if field == nil || v.Decode(field) != nil {
				return errorAt(v, "%s: a count is a number, or {min: 4, max: 16, multiple: 2}", name)
			}
			return nil
		})
	}
	return k
}

// growth is when a group grows: "checkpoint", which is 0, or a duration.
func growth(p *int64) kind {
	k := milliseconds(p, 10*time.Second, 0)
	set := k.set
	k.placeholder = "WHEN"
	k.set = func(text string) error {
		if text == "checkpoint" {
			*p = 0
			return nil
		}
		if set(text) != nil || *p == 0 {
			return errors.New("write checkpoint, or a length of time, as in 10m")
		}
		return nil
	}
	return k
}

// optional makes a kind optional. isUnset reports whether its field is unset.
func optional(k kind, empty func() bool) kind {
	encode, check := k.encode, k.check
	k.optional = true
	k.encode = func() any {
		if empty() {
			return nil
		}
		return encode()
	}
	k.check = func() error {
		if empty() {
			return nil
		}
		return check()
	}
	return k
}

// megabytes is an amount of memory in MB.
func megabytes(p *int64) kind {
	return kind{
		placeholder: "SIZE",
		set: func(text string) error {
			mb, err := ParseMemory(text)
			if err != nil {
				return err
			}
			*p = mb
			return nil
		},
		encode: func() any {
			if *p == 0 {
				return nil
			}
			if *p%1024 == 0 {
				return fmt.Sprintf("%dg", *p/1024)
			}
			return fmt.Sprintf("%dm", *p)
		},
	}
}

// milliseconds is a duration: 0, or from least to most; most 0 means no limit.
func milliseconds(p *int64, least, most time.Duration) kind {
	return duration(func() time.Duration { return time.Duration(*p) * time.Millisecond },
		func(d time.Duration) { *p = d.Milliseconds() }, least, most)
}

// seconds is a positive duration.
func seconds(p *float64) kind {
	k := duration(func() time.Duration { return time.Duration(*p * float64(time.Second)) },
		func(d time.Duration) { *p = d.Seconds() }, 0, 0)
	set := k.set
	k.set = func(text string) error {
		if err := set(text); err != nil || *p <= 0 {
			return errors.New("write a time such as 30s or 2m")
		}
		return nil
	}
	return k
}

func duration(get func() time.Duration, put func(time.Duration), least, most time.Duration) kind {
	return kind{
		placeholder: "DURATION",
		set: func(text string) error {
			d, err := time.ParseDuration(text)
			if err != nil || d%time.Millisecond != 0 {
				return errors.New("write a length of time, as in 90s, 10m or 2h")
			}
			put(d)
			return nil
		},
		encode: func() any {
			if get() == 0 {
				return 0
			}
			return durationText(get())
		},
		check: func() error {
			switch d := get(); {
			case d == 0 || d >= least && d > 0 && (most == 0 || d <= most):
				return nil
			case most != 0:
				return fmt.Errorf("write a time from %s to %s, as in 30s", durationText(least), durationText(most))
			case least != 0:
				return fmt.Errorf("write a time of %s or more, as in 10m, or 0", durationText(least))
			}
			return errors.New("write a time, as in 5m, or 0")
		},
	}
}

// durationText formats a duration without trailing zero parts: 10m, not 10m0s.
func durationText(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
