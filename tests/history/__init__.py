"""Suites of streamweld.history: conversion, the checker, profiles, replayed responses."""
