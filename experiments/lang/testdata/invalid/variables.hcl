experiment "x" {
  duration = "10s"
}

variable "none" {
  type = number
}

variable "bad" {
  type    = number
  default = "many"
}

variable "kind" {
  type    = strin
  default = "a"
}

variable "refers" {
  default = host.cores
}

variable "odd" {
  default = 3
  validation {
    condition     = var.odd % 2 == 0
    error_message = "odd must be even, not ${var.odd}."
  }
}

variable "odd" {}
