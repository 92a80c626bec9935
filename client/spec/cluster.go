package spec

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"holdfast/internal/hadoop/yarn"
)

// Kinds of options that say where on a cluster a job runs and how it is found.

// labelName matches what YARN accepts as a node label
// (NodeLabelUtil.checkAndThrowLabelName).
var labelName = regexp.MustCompile(`^[0-9a-zA-Z][0-9a-zA-Z_-]{0,254}$`)

// nodeLabel is the name of one node label. YARN gives a node at most one, and knows no
// expressions of several.
func nodeLabel(p *string) kind {
	k := text(p, "LABEL")
	k.check = func() error {
		if *p != "" && !labelName.MatchString(*p) {
			return errors.New("write the name of one node label (yarn cluster --list-node-labels), letters, digits, _ and -")
		}
		return nil
	}
	return k
}

// checkTag returns an error for what YARN refuses as a tag of an application
// (ApplicationSubmissionContextPBImpl.checkTags; YarnConfiguration has the limits).
func checkTag(tag string) error {
	if tag == "" || len(tag) > 100 || strings.ContainsFunc(tag, func(r rune) bool { return r < ' ' || r > '~' }) {
		return fmt.Errorf("the tag %q is not of 1 to 100 printable ASCII characters", tag)
	}
	return nil
}

// reservation is the id of a reservation of YARN's.
func reservation(p *string) kind {
	k := text(p, "ID")
	k.check = func() error {
		if *p == "" {
			return nil
		}
		_, err := yarn.ParseReservationID(*p)
		return err
	}
	return k
}

// nothing leaves what the user wrote as it is.
func nothing(word string) string { return word }

// words is a list of texts, separated by commas in flags, without repetitions. normal makes
// what the user wrote what is kept.
func words(p *[]string, placeholder string, normal func(string) string, check func(string) error) kind {
	add := func(word string) error {
		if word = normal(strings.TrimSpace(word)); !slices.Contains(*p, word) {
			*p = append(*p, word)
		}
		return nil
	}
	return kind{
		placeholder: placeholder, repeated: true,
		set:    func(text string) error { return eachWord(text, add) },
		decode: func(n *yaml.Node) error { return eachItem(n, "the list", add) },
		encode: func() any { return slices.Clone(*p) },
		check: func() error {
			if check == nil {
				return nil
			}
			for _, word := range *p {
				if err := check(word); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
