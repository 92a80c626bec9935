package faults_test

import (
	"slices"
	"strings"
	"testing"

	"holdfast/test/faults"
)

func TestAPlanIsThatOfItsSeed(t *testing.T) {
	plan := func(seed uint64) string {
		rounds, err := faults.Plan(seed, 2, 5, faults.Names())
		if err != nil {
			t.Fatal(err)
		}
		if want := 2*len(faults.Names()) + 5; len(rounds) != want {
			t.Errorf("%d rounds, want %d", len(rounds), want)
		}
		var names []string
		for _, r := range rounds {
			names = append(names, r.String())
		}
		return strings.Join(names, ", ")
	}
	if a, b := plan(1), plan(1); a != b {
		t.Errorf("a seed gives two plans:\n%s\n%s", a, b)
	}
	if plan(1) == plan(2) {
		t.Error("two seeds give one plan")
	}
}

func TestScenariosAreChosenByName(t *testing.T) {
	rest, chosen := faults.Scenarios([]string{"kill ps", "slow archive", "kill RM + kill AM"})
	if strings.Join(rest, ",") != "kill ps,kill RM + kill AM" || len(chosen) != 1 || chosen[0].String() != "slow archive" {
		t.Errorf("rounds %q, scenarios %v", rest, chosen)
	}
	if _, err := faults.Plan(1, 1, 0, faults.Rounds()); err != nil {
		t.Error(err)
	}
	for _, name := range slices.Concat(faults.Rounds(), faults.ScenarioNames()) {
		if strings.Contains(name, ",") {
			t.Errorf("-only separates names by commas, and there is one in %q", name)
		}
	}
}

func TestARoundOfTwo(t *testing.T) {
	rounds, err := faults.Plan(1, 3, 0, []string{"kill ps + pause DN"})
	if err != nil || len(rounds) != 3 || rounds[2].String() != "kill ps + pause DN" {
		t.Errorf("%v, %v", rounds, err)
	}
}

func TestAFaultThatThereIsNot(t *testing.T) {
	_, err := faults.Of("kill ps", "kill everybody")
	if err == nil || !strings.Contains(err.Error(), "kill everybody") || !strings.Contains(err.Error(), "kill AM") {
		t.Errorf("%v", err)
	}
}
