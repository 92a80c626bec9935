package runtime

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"holdfast/hdfsckpt/formats"
	"holdfast/proto"
	"holdfast/runtime/framework"
	"holdfast/runtime/frameworks"
	"holdfast/runtime/tasklog"
)

// roleName: a role's tasks are names of hosts and stand in environment
// variables and in paths.
var roleName = regexp.MustCompile(`^[a-z]([a-z0-9_-]{0,30}[a-z0-9])?$`)

// Complete checks the roles of a job against its framework and fills in what
// the framework decides: roles that it needs, what the loss of a task means, and what its
// end does. Roles without tasks are dropped. A job without a framework gets the one that it implies.
func Complete(spec *proto.JobSpec) error {
	if spec.Framework == "" {
		spec.Framework, _ = ImpliedFramework(spec)
	}
	f := frameworks.Named(spec.Framework)
	if f == nil {
		return fmt.Errorf("the framework %q is not known; use one of %s", spec.Framework, strings.Join(FrameworkNames(), ", "))
	}
	if err := checkRoles(spec); err != nil {
		return err
	}
	spec.Roles = slices.DeleteFunc(spec.Roles, func(r *proto.RoleSpec) bool { return r.Count == 0 })
	if len(spec.Roles) == 0 {
		return errors.New("the job has no tasks; say how many it is to have, for example --worker 1")
	}
	if f.AddRoles != nil {
		f.AddRoles(spec)
	}
	if n := Count(spec); n > maxTasks {
		return fmt.Errorf("the job has %d tasks; at most %d can have an address", n, maxTasks)
	}
	required := false
	for _, r := range spec.Roles {
		completeProcesses(f, spec, r)
		r.Loss, r.Completion = rules(f, spec, r.Name)
		r.SavesTogether = r.Loss == proto.LossRule_LOSS_RULE_ALL && f.SavesTogether != nil && f.SavesTogether(spec)
		if r.Completion != proto.CompletionRule_COMPLETION_RULE_OPTIONAL {
			r.FinishMs = 0 // it decides itself when the job ends
		}
		if err := checkMin(f, r); err != nil {
			return err
		}
		required = required || r.Completion == proto.CompletionRule_COMPLETION_RULE_REQUIRED
		if len(r.Command) == 0 && len(spec.Command) == 0 {
			return fmt.Errorf("the role %s has no command; put it after --, for example: -- python train.py", r.Name)
		}
	}
	if !required {
		return fmt.Errorf("the job would never end: %s run until others are done, and there are no others; add workers, for example --worker 1", roleList(spec))
	}
	if spec.Progress == "" {
		spec.Progress = tasklog.DefaultSteps
	}
	if err := tasklog.CheckSteps(spec.Progress); err != nil {
		return err
	}
	for _, other := range frameworks.All {
		for _, o := range other.Options {
			if other != f && o.Given(spec) {
				return fmt.Errorf("%s is for %s, and the framework is %s; use --framework %s, or leave %s out", o.Flag, o.For, f.Name, other.Name, o.Flag)
			}
		}
	}
	for _, c := range spec.Checkpoints {
		if err := formats.CheckRule(CheckpointRule(c), c.Path); err != nil {
			return err
		}
	}
	if f.Check != nil {
		if err := f.Check(spec); err != nil {
			return err
		}
	}
	return checkLengths(spec)
}

func checkRoles(spec *proto.JobSpec) error {
	seen := map[string]string{}
	for _, r := range spec.Roles {
		if !roleName.MatchString(r.Name) {
			return fmt.Errorf("a role cannot be named %q: its tasks are host names, so use small letters, digits and - only, a letter first, at most 32", r.Name)
		}
		if before, ok := seen[variable(r.Name)]; ok {
			if before == r.Name {
				return fmt.Errorf("the role %s is given twice; give it once, with its number of tasks", r.Name)
			}
			return fmt.Errorf("the roles %s and %s share the variable HOLDFAST_%s_HOSTS; rename one", before, r.Name, variable(r.Name))
		}
		seen[variable(r.Name)] = r.Name
		if r.Count < 0 {
			return fmt.Errorf("the role %s cannot have %d tasks", r.Name, r.Count)
		}
	}
	return nil
}

// rules returns what the loss and the end of a role's task mean for the job.
func rules(f *framework.Framework, spec *proto.JobSpec, role string) (proto.LossRule, proto.CompletionRule) {
	switch {
	case f.Observes(role):
		return proto.LossRule_LOSS_RULE_ALONE, proto.CompletionRule_COMPLETION_RULE_OPTIONAL
	case f.Rules == nil:
		return proto.LossRule_LOSS_RULE_ALONE, proto.CompletionRule_COMPLETION_RULE_REQUIRED
	}
	return f.Rules(spec, role)
}

// checkMin refuses a start with fewer tasks where the framework has no use for it.
func checkMin(f *framework.Framework, r *proto.RoleSpec) error {
	switch {
	case r.Min == 0 || r.Min == r.Count:
		return nil
	case r.Min < 0 || r.Min > r.Count:
		return fmt.Errorf("the role %s has %d tasks and cannot start with %d of them; choose a number from 1 to %d", r.Name, r.Count, r.Min, r.Count)
	case r.Multiple > 1 && (r.Count%r.Multiple != 0 || r.Min%r.Multiple != 0):
		return fmt.Errorf("the role %s has %d to %d tasks, and these are no multiples of %d; choose numbers that are", r.Name, r.Min, r.Count, r.Multiple)
	case r.Loss == proto.LossRule_LOSS_RULE_ALL && !f.Elastic:
		return fmt.Errorf("the role %s cannot do with %d of its %d tasks: ranks of %s always go on as many as they were; leave the minimum out, or ask for fewer tasks", r.Name, r.Min, r.Count, f.Title)
	case r.Completion == proto.CompletionRule_COMPLETION_RULE_SERVICE:
		return fmt.Errorf("the role %s cannot start with %d of its %d tasks: each of them holds a part of the model; leave the minimum out, or ask for fewer tasks", r.Name, r.Min, r.Count)
	}
	return nil
}

func roleList(spec *proto.JobSpec) string {
	var names []string
	for _, r := range spec.Roles {
		names = append(names, r.Name)
	}
	return strings.Join(names, ", ")
}

// Observes reports whether the tasks of a role only look on: the job's result does not depend on
// them.
func Observes(spec *proto.JobSpec, role string) bool {
	return framework.FindRole(spec, role).GetCompletion() == proto.CompletionRule_COMPLETION_RULE_OPTIONAL
}

// Notes are what the framework of a complete spec has to say of what may not work, for a
// person.
func Notes(spec *proto.JobSpec) []string {
	if f := frameworks.Of(spec); f.Notes != nil {
		return f.Notes(spec)
	}
	return nil
}

// UsualFinish is how long a task of a role may go on after the job has succeeded,
// unless the user chooses another time.
func UsualFinish(framework, role string) time.Duration {
	if f := frameworks.Named(framework); f != nil {
		return f.Observers[role]
	}
	return 0
}
