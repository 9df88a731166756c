package store

import (
	"fmt"
	"maps"
	"math"

	"wirelab/results"
)

// Clean removes values that are not finite from a run, because JSON cannot
// hold them and nothing downstream should meet them. A run that lost a value
// and was ok becomes partial, with a note.
func Clean(run *results.Run) {
	lost := 0
	kept := run.Values[:0:0]
	for _, v := range run.Values {
		if finite(v.Value) {
			kept = append(kept, v)
			continue
		}
		lost++
	}
	run.Values = kept
	for name, flows := range run.Flows {
		for i := range flows {
			flows[i] = cleanMap(flows[i], &lost)
		}
		run.Flows[name] = flows
	}
	for i := range run.Records {
		run.Records[i].Values = cleanMap(run.Records[i].Values, &lost)
	}
	for i := range run.Actors {
		a := &run.Actors[i]
		a.CPUSeconds, a.MaxCoreLoad = orZero(a.CPUSeconds), orZero(a.MaxCoreLoad)
	}
	for i := range run.Events {
		run.Events[i].RunningRatio = orZero(run.Events[i].RunningRatio)
	}
	for i := range run.Links {
		if c := run.Links[i].Calibration; c != nil {
			cleanCalibration(c)
		}
	}
	if lost == 0 {
		return
	}
	if run.Status == results.StatusOK {
		run.Status = results.StatusPartial
	}
	run.Notes = append(run.Notes, fmt.Sprintf("%d value(s) were not finite and are missing", lost))
}

func cleanMap(m map[string]float64, lost *int) map[string]float64 {
	before := len(m)
	maps.DeleteFunc(m, func(_ string, v float64) bool { return !finite(v) })
	*lost += before - len(m)
	return m
}

func cleanCalibration(c *results.Calibration) {
	for _, p := range []*float64{
		&c.RTTAskedS, &c.RTTMeasuredS, &c.RTTToleranceS, &c.ForwardAskedBPS, &c.ForwardBPS,
		&c.ReverseAskedBPS, &c.ReverseBPS, &c.RateToleranceBPS, &c.DurationS, &c.ReverseToleranceB,
	} {
		*p = orZero(*p)
	}
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

func orZero(v float64) float64 {
	if finite(v) {
		return v
	}
	return 0
}
