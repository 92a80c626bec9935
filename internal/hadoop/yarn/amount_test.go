package yarn

import (
	"math"
	"testing"
)

func TestAmounts(t *testing.T) {
	for _, c := range []struct {
		text, unit string
		want       Amount
	}{
		{"2", "", Amount{2, ""}},
		{"100G", "M", Amount{100000, "M"}},
		{"1500M", "G", Amount{2, "G"}}, // at least as much as was asked for
		{"1Gi", "M", Amount{1074, "M"}},
		{"4Ti", "Gi", Amount{4096, "Gi"}},
		{"500m", "", Amount{1, ""}},
		{"9000000000000P", "", Amount{math.MaxInt64, ""}},
	} {
		a, err := ParseAmount(c.text)
		if err != nil || a.String() != c.text {
			t.Errorf("%s is read as %v, %v", c.text, a, err)
		}
		if got := a.In(c.unit); got != c.want {
			t.Errorf("%s in %q is %v, want %v", c.text, c.unit, got, c.want)
		}
	}
	for _, text := range []string{"", "-1", "1.5", "G", "3 G", "1X", "1KI", "99999999999999999999"} {
		if a, err := ParseAmount(text); err == nil {
			t.Errorf("%q is read as %v", text, a)
		}
	}
	if (Amount{1, "Gi"}).Compare(Amount{1, "G"}) != 1 || (Amount{1000, "M"}).Compare(Amount{1, "G"}) != 0 {
		t.Error("amounts of different units are compared wrongly")
	}
}

func TestResourcesCountAllTypes(t *testing.T) {
	license := func(n int64) Resource {
		return Resource{MemoryMB: 1024, VCores: 1, Others: map[string]Amount{"license": {n, ""}}}
	}
	node := Resource{MemoryMB: 4096, VCores: 4, Others: map[string]Amount{"license": {2, ""}, "disk": {100, "G"}}}
	if !license(2).Fits(node) || license(3).Fits(node) || license(1).Fits(Resource{MemoryMB: 4096, VCores: 4}) {
		t.Error("a type of its own does not count")
	}
	if free := node.Minus(license(1)); free.Others["license"].Value != 1 || free.Others["disk"].Value != 100 {
		t.Errorf("left are %v", free)
	}
	if license(1).Equal(license(2)) || !license(1).Equal(license(1)) || license(1).Equal(Resource{MemoryMB: 1024, VCores: 1}) {
		t.Error("resources that differ in a type of their own are equal, or the same ones are not")
	}
	if got := resource(license(2).proto()); !got.Equal(license(2)) {
		t.Errorf("over the wire it is %v", got)
	}
	if got := (Resource{MemoryMB: 1, VCores: 1, Others: map[string]Amount{"b": {1, "G"}, "a": {2, ""}}}).String(); got != "1 MB, 1 vcore, 2 a, 1G b" {
		t.Errorf("it is written as %q", got)
	}
}
