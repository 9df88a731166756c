# flags: --smoke
experiment "x" {
  duration = "1s"
  smoke {
    variables   = { flow = 1, flows = "many" }
    sweep       = { bufer = [1], buffer = [] }
    repetitions = 0
    durration   = "1s"
  }
}

variable "flows" {
  default = 1
}

sweep {
  buffer = [1, 2]
}
