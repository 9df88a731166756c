package instrument

// judge gives every event its status: of opening it, of its share of the
// counters' time, and of what it says beside the others.
func (m *perfRun) judge(sum []perfTotal) []string {
	byName := make(map[string]perfTotal, len(sum))
	for i, e := range m.events {
		if m.failed[i] == "" {
			byName[e.name] = sum[i]
		}
	}
	out := make([]string, len(sum))
	for i, e := range m.events {
		switch {
		case m.failed[i] != "":
			out[i] = m.failed[i]
		case sum[i].backwards || implausible(e, sum[i], byName):
			out[i] = eventImplausible
		case sum[i].ratio() < perfWhole:
			out[i] = eventMultiplexed
		default:
			out[i] = eventOK
		}
	}
	return out
}

// plausibleSlack is how much two events that took turns may contradict each
// other.
const plausibleSlack = 1.05

// implausible finds counts that no processor makes; virtual machines are known
// to give counters that open, run and stay at zero.
func implausible(e perfEvent, t perfTotal, others map[string]perfTotal) bool {
	if e.kind == perfSoftware || e.kind == perfRaw || t.running < 1e6 {
		return false // under a millisecond proves nothing
	}
	switch e.name {
	case "cycles", "ref-cycles":
		return t.value == 0 || t.value > t.enabled*20 // 20 GHz
	case "instructions":
		c, ok := others["cycles"]
		return t.value == 0 || ok && c.value > 0 && t.value > 16*c.value
	case "branches":
		i, ok := others["instructions"]
		return t.value == 0 || ok && i.value > 0 && t.value > plausibleSlack*i.value
	}
	for _, r := range perfRatios() {
		if !r.complement || r.part != e.name {
			continue
		}
		if whole, ok := others[r.whole]; ok && t.value > plausibleSlack*whole.value {
			return true
		}
	}
	return false
}
