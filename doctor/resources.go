package doctor

import (
	"fmt"
	"strings"

	"holdfast/doctor/check"
	"holdfast/internal/hadoop/yarn"
)

// diagnoseResources reports which resource types the cluster counts beside memory and vcores,
// and how many nodes have some of each.
func diagnoseResources(nodes []yarn.Node, types []yarn.ResourceType) check.Finding {
	f := check.Finding{Subject: "resource types", Level: check.Good, Text: "memory and vcores"}
	var parts []string
	for _, t := range types {
		option, have := "--ROLE-resource "+t.Name+"=N", 0
		if own := yarn.OptionOfType(t.Name); own != "" {
			option = "--ROLE-" + own
		}
		one := yarn.ResourceWith(t)
		for _, n := range nodes {
			if n.Running() && one.Fits(n.Capability) {
				have++
			}
		}
		if have == 0 {
			f.Level = check.Note
		}
		parts = append(parts, fmt.Sprintf("%s on %s (%s)", t.Name, nodesRun(have), option))
	}
	if len(parts) > 0 {
		f.Text += ", and " + strings.Join(parts, ", ")
	}
	return f
}
