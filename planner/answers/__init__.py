"""From priced options to an answer: choice, verdict, remarks, recommendation, curves, explanation."""
